#include "profile/json.h"

#include <nlohmann/json.hpp>

namespace quern::profile {
namespace {

using Json = nlohmann::ordered_json;

// Runs of a section that its timeline shows: the last ones.
constexpr size_t kTimelineRuns = 4;

Json MachineJson(const Machine& machine) {
  Json memory = Json::array();
  for (const MemoryLevel& level : machine.memory)
    memory.push_back({{"name", level.name}, {"bytes", level.bytes}, {"gbps", level.gbps}});
  return {{"cpu", machine.cpu},
          {"level", machine.level},
          {"threads", machine.threads},
          {"memory", std::move(memory)},
          {"dram_gbps_one_thread", machine.dram_gbps_one},
          {"dram_buffer_bytes", machine.dram_bytes},
          {"f32_gflops", machine.f32_gflops},
          {"bf16_gflops", machine.bf16_gflops},
          {"int8_gops", machine.int8_gops},
          {"dispatch_ns", machine.dispatch_ns},
          {"probe_ms", machine.probe_ms},
          {"measured", machine.measured},
          {"rounds", machine.rounds},
          {"stored", machine.stored}};
}

// Sums and what follows from them: the columns of every table.
void AddFigures(Json& row, const Profile& profile, const Section& section, const Sums& sums) {
  const Rates rates = profile.RatesOf(sums, section);
  const auto all = static_cast<double>(section.wall + section.bind);
  const double worker_ns = static_cast<double>(sums.wall) * profile.threads;
  row["calls"] = sums.calls;
  row["chunks"] = sums.chunks;
  row["wall_ns"] = sums.wall;
  row["busy_ns"] = sums.busy;
  row["least_ns"] = sums.least;
  row["most_ns"] = sums.most;
  row["median_ns"] = sums.Median();
  row["typical_ns"] = sums.typical;
  row["disturbed"] = sums.Disturbed();
  row["share"] = all > 0 ? 100 * static_cast<double>(sums.wall) / all : 0;
  row["balance"] = worker_ns > 0 ? 100 * static_cast<double>(sums.busy) / worker_ns : 0;
  row["flops"] = sums.flops;
  row["bf16_ops"] = sums.bf16_ops;
  row["int8_ops"] = sums.int8_ops;
  row["read_bytes"] = sums.read;
  row["written_bytes"] = sums.written;
  row["gflops"] = rates.gflops;
  row["gbps"] = rates.gbps;
  row["intensity"] = rates.intensity;
  row["roof_ns"] = rates.roof_ns;
  row["percent_of_peak"] = rates.percent;
  row["bound"] = std::string(Name(rates.bound));
  if (!profile.counted) return;
  Json counts = Json::object();
  for (size_t c = 0; c < HardwareCounters().size(); ++c) counts[HardwareCounters()[c].name] = sums.counts[c];
  row["counters"] = std::move(counts);
}

Json LaunchJson(const Profile& profile, const Section& section, const Launch& launch) {
  Json arguments = Json::array();
  for (const Argument& a : launch.arguments) {
    arguments.push_back({{"param", a.param},
                         {"mode", a.mode},
                         {"buffer", a.buffer},
                         {"offset", a.offset},
                         {"read_bytes", a.read},
                         {"written_bytes", a.written}});
  }
  Json row = {
      {"kernel", launch.kernel}, {"label", launch.label}, {"block", launch.block}, {"arguments", std::move(arguments)}};
  AddFigures(row, profile, section, launch.sums);
  return row;
}

Json OpLinesJson(const OpLines& stage) { return {{"text", stage.text}, {"ops", stage.ops}}; }
Json KirLinesJson(const KirLines& stage) { return {{"text", stage.text}, {"kir_lines", stage.lines}}; }

Json StagesJson(const Stages& stages) {
  Json json = {{"hir", OpLinesJson(stages.hir)},
               {"mir", OpLinesJson(stages.mir)},
               {"kir", {{"ops", stages.kir_ops}}},
               {"llvm", KirLinesJson(stages.llvm)},
               {"assembly", KirLinesJson(stages.assembly)}};
  if (!stages.tiles.text.empty()) json["tiles"] = KirLinesJson(stages.tiles);
  return json;
}

Json KernelJson(const Profile& profile, const Section& section, const Kernel& kernel) {
  Json origins = Json::array();
  for (const Origin& origin : kernel.origins) origins.push_back({{"op", origin.op}, {"share", origin.share}});
  Json row = {{"symbol", kernel.symbol},     {"family", kernel.family},       {"label", kernel.label},
              {"block", kernel.block},       {"origins", std::move(origins)}, {"sequential", kernel.sequential},
              {"estimate", kernel.estimate}, {"launches", kernel.launches},   {"scratch_bytes", kernel.scratch_bytes}};
  AddFigures(row, profile, section, kernel.sums);
  row["kir"] = kernel.text;
  if (kernel.stages != nullptr) row["stages"] = StagesJson(*kernel.stages);
  return row;
}

Json SectionJson(const Profile& profile, const Section& section) {
  Json json = {{"phase", section.phase},
               {"variant", section.variant},
               {"guard", section.guard},
               {"steps", section.steps},
               {"warm_up_steps", section.warm_up_steps},
               {"tokens", section.tokens},
               {"symbols", section.symbols}};
  const int64_t all = section.wall + section.bind;
  const auto share = [&](int64_t ns) { return all > 0 ? 100 * static_cast<double>(ns) / static_cast<double>(all) : 0; };
  json["step_ns"] = all;
  json["step"] = {{"median_ns", section.step.Median()},
                  {"least_ns", section.step.least},
                  {"most_ns", section.step.most},
                  {"disturbed", section.step.Disturbed()}};
  json["tokens_per_second"] = all > 0 ? static_cast<double>(section.tokens) * 1e9 / static_cast<double>(all) : 0;
  json["wall_ns"] = section.wall;
  json["kernels_wall_ns"] = section.kernels_wall;
  json["dispatch"] = {{"wall_ns", section.dispatch()}, {"share", share(section.dispatch())}};
  json["bind"] = {{"wall_ns", section.bind}, {"share", share(section.bind)}};
  const int64_t worker_ns = section.wall * profile.threads;
  json["workers"] = {
      {"total_ns", worker_ns},
      {"busy_ns", section.busy},
      {"idle_ns", worker_ns - section.busy},
      {"idle_percent",
       worker_ns > 0 ? 100 * static_cast<double>(worker_ns - section.busy) / static_cast<double>(worker_ns) : 0}};
  json["working_set_bytes"] = section.working_set;
  json["weight_bytes"] = section.weights;
  json["memory"] = profile.machine.memory.empty() ? "" : profile.machine.memory[section.memory].name;
  json["arena_bytes"] = section.arena_bytes;
  Json total = Json::object();
  AddFigures(total, profile, section, section.sums);
  json["total"] = std::move(total);
  json["kernels"] = Json::array();
  for (const Kernel& kernel : section.kernels) json["kernels"].push_back(KernelJson(profile, section, kernel));
  json["blocks"] = Json::array();
  for (const Block& block : section.blocks) {
    Json row = {{"name", block.name}, {"launches", block.launches}};
    AddFigures(row, profile, section, block.sums);
    json["blocks"].push_back(std::move(row));
  }
  json["launches"] = Json::array();
  for (const Launch& launch : section.launches) json["launches"].push_back(LaunchJson(profile, section, launch));
  json["buffers"] = Json::array();
  for (const Buffer& b : section.buffers) {
    json["buffers"].push_back({{"name", b.name},
                               {"home", b.home},
                               {"type", b.type},
                               {"bytes", b.bytes},
                               {"offset", b.offset},
                               {"first_launch", b.first_launch},
                               {"last_launch", b.last_launch}});
  }
  return json;
}

Json CompileJson(const Profile& profile) {
  Json steps = Json::array(), variants = Json::array(), kernels = Json::array();
  for (const TimeSpan& step : profile.steps) {
    Json row = {{"name", step.name}, {"start_ns", step.start - profile.origin}, {"ns", step.duration}, {"variant", -1}};
    for (const Executable::CompiledVariant& v : profile.variants) {
      if (v.start <= step.start && step.start <= v.planned) row["variant"] = v.variant;
    }
    steps.push_back(std::move(row));
  }
  for (const Executable::CompiledVariant& v : profile.variants) {
    variants.push_back({{"variant", v.variant},
                        {"start_ns", v.start - profile.origin},
                        {"plan_ns", v.planned - v.start},
                        {"machine_code_ns", v.compiled - v.planned}});
  }
  for (const CompiledKernel& kernel : profile.compiled) {
    const jit::ObjectReport& r = kernel.report;
    Json row = {{"symbol", r.symbol}, {"variant", kernel.variant}, {"loaded", r.loaded}, {"thread", r.thread}};
    if (!r.loaded) row["start_ns"] = r.start - profile.origin;
    const int64_t total = r.times.emit + r.times.link + r.times.optimise + r.times.codegen + r.jitlink;
    row.update({{"emit_ns", r.times.emit},
                {"link_ns", r.times.link},
                {"optimise_ns", r.times.optimise},
                {"codegen_ns", r.times.codegen},
                {"jitlink_start_ns", r.jitlink_start - profile.origin},
                {"jitlink_ns", r.jitlink},
                {"total_ns", total},
                {"object_bytes", r.bytes},
                {"instructions", r.stats.instructions},
                {"gathers", r.stats.gathers},
                {"scalarised", r.stats.scalarised}});
    kernels.push_back(std::move(row));
  }
  return {{"steps", std::move(steps)}, {"variants", std::move(variants)}, {"kernels", std::move(kernels)}};
}

// The last runs of every section, and of every phase's warm-up the first.
Json TimelineJson(const Profile& profile) {
  std::vector<bool> shown(profile.timeline.size());
  std::vector<size_t> left(profile.sections.size(), kTimelineRuns);
  for (size_t r = profile.timeline.size(); r-- > 0;) {
    const TimelineRun& run = profile.timeline[r];
    if (run.warm_up || run.section < 0 || left[run.section] == 0) continue;
    shown[r] = true;
    --left[run.section];
  }
  Json runs = Json::array();
  for (size_t r = 0; r < profile.timeline.size(); ++r) {
    if (!shown[r]) continue;
    const TimelineRun& run = profile.timeline[r];
    Json slices = Json::array();
    for (const TimelineSlice& s : run.slices) slices.push_back({s.launch, s.worker, s.start, s.duration, s.chunks});
    runs.push_back({{"section", run.section},
                    {"step", run.step},
                    {"start_ns", run.start},
                    {"bind_ns", run.bind},
                    {"kernels_start_ns", run.kernels_start},
                    {"kernels_ns", run.kernels},
                    {"symbols", run.symbols},
                    {"slices", std::move(slices)}});
  }
  return runs;
}

Json SpansJson(const Profile& profile) {
  Json rows = Json::array();
  for (const SpanSums& row : profile.SumsOfSpans()) {
    rows.push_back({{"name", row.name},
                    {"phase", row.phase},
                    {"count", row.count},
                    {"wall_ns", row.wall},
                    {"least_ns", row.least},
                    {"most_ns", row.most}});
  }
  return rows;
}

}  // namespace

std::string JsonText(const Profile& profile) {
  Json counters = {{"read", profile.counted}, {"reason", profile.counters}, {"events", Json::array()}};
  if (profile.counted) {
    for (const CounterEvent& event : HardwareCounters()) counters["events"].push_back(event.name);
  }
  Json json = {{"schema", "quern.profile"},
               {"version", kSchemaVersion},
               {"model", profile.model},
               {"threads", profile.threads},
               {"exact", profile.exact},
               {"context", profile.context},
               {"machine", MachineJson(profile.machine)},
               {"counters", std::move(counters)}};
  json["compile"] = CompileJson(profile);
  json["sections"] = Json::array();
  for (const Section& section : profile.sections) json["sections"].push_back(SectionJson(profile, section));
  json["spans"] = SpansJson(profile);
  json["timeline"] = TimelineJson(profile);
  // Names come from files: bytes that are no UTF-8 are replaced.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace quern::profile
