// From an executable and the log of its runs to a profile.
#include <algorithm>
#include <memory>

#include "base/check.h"
#include "kir/cost.h"
#include "kir/scratch.h"
#include "profile/profile.h"

namespace quern::profile {
namespace {

std::string_view ModeName(kir::Mode mode) {
  constexpr std::string_view kNames[] = {"in", "out", "inout"};
  return kNames[static_cast<int>(mode)];
}

// The costs of the kernels of one plan, each counted once for the values of the symbols it has.
class Costs {
 public:
  explicit Costs(const lir::Plan& plan) : plan_(plan), known_(plan.kernels.size()) {}

  StatusOr<const kir::KernelCost*> Of(int kernel, const Binding& binding) {
    Binding own;
    for (const kir::SymbolDecl& symbol : plan_.kernels[kernel].symbols) {
      const auto value = binding.find(symbol.name);
      if (!symbol.derived && value != binding.end()) own[symbol.name] = value->second;
    }
    const auto found = known_[kernel].find(own);
    if (found != known_[kernel].end()) return &found->second;
    QUERN_ASSIGN(kir::KernelCost cost, kir::CostOf(plan_.kernels[kernel], own));
    return &known_[kernel].emplace(std::move(own), std::move(cost)).first->second;
  }

 private:
  const lir::Plan& plan_;
  std::vector<std::map<Binding, kir::KernelCost>> known_;
};

Binding BindingOf(const Signature& signature, const std::vector<int64_t>& values) {
  Binding binding;
  size_t i = 0;
  for (const auto& [name, range] : AllSymbols(signature)) binding[name] = values[i++];
  return binding;
}

// The op that does most of a kernel's work, as the launch with this label has it: kernels of equal layers are one, with
// the labels of the first.
std::string Principal(const kir::Kernel& kernel, const kir::KernelCost& cost, const std::string& label) {
  const auto most = std::max_element(cost.origins.begin(), cost.origins.end());
  if (most == cost.origins.end() || *most <= 0) return label;
  const std::string& origin = kernel.origins[most - cost.origins.begin()];
  const std::string first = origin.substr(0, origin.find('/')), own = label.substr(0, label.find('/'));
  return MergedPath(first) == MergedPath(own) ? own + origin.substr(first.size()) : origin;
}

class SectionBuilder {
 public:
  SectionBuilder(const Executable& executable, const Phase& phase, int variant)
      : executable_(executable), plan_(*executable.plan(variant)), costs_(plan_.plan()) {
    section.phase = phase.name;
    section.variant = variant;
    section.guard = GuardText(executable.guard(variant));
    for (const lir::Launch& launch : plan_.plan().launches)
      section.launches.push_back({launch.kernel, launch.label, {}, {}, {}});
  }

  Status Add(const LoggedRun& run, const TickScale& scale, const std::string& token_symbol) {
    const Binding binding = BindingOf(executable_.signature(), run.values);
    ++section.steps;
    if (const auto tokens = binding.find(token_symbol); tokens != binding.end()) section.tokens += tokens->second;
    section.bind += run.bind_ns;
    const auto ns = [&](uint64_t ticks) {
      return static_cast<int64_t>(static_cast<double>(ticks) * scale.ns_per_tick() + 0.5);
    };
    section.wall += ns(run.ticks());
    Sums step;
    step.calls = 1;
    step.wall = step.least = step.most = run.bind_ns + ns(run.ticks());
    step.walls = {step.wall};
    section.step.Add(step);
    for (const RunPart& part : run.parts) {
      for (size_t l = 0; l < part.record.dispatches(); ++l) {
        Launch& launch = section.launches[part.first + l];
        Sums sums;
        uint64_t begin = UINT64_MAX, end = 0;
        for (int w = 0; w < part.record.workers(); ++w) {
          const RunSlice& slice = part.record.at(w, l);
          if (slice.chunks == 0) continue;
          begin = std::min(begin, slice.begin);
          end = std::max(end, slice.end);
          sums.busy += ns(slice.end - slice.begin);
          sums.chunks += slice.chunks;
          if (!part.record.has_counts()) continue;
          for (int c = 0; c < kMaxCounters; ++c) sums.counts[c] += part.record.counts(w, l)[c];
        }
        sums.calls = 1;
        sums.wall = end > begin ? ns(end - begin) : 0;
        sums.least = sums.most = sums.wall;
        sums.walls = {sums.wall};
        QUERN_ASSIGN(const kir::KernelCost* cost, costs_.Of(launch.kernel, binding));
        sums.flops = cost->flops;
        sums.bf16_ops = cost->bf16_ops;
        sums.int8_ops = cost->int8_ops;
        sums.read = cost->read();
        sums.written = cost->written();
        launch.sums.Add(sums);
      }
    }
    last_ = binding;
    return absl::OkStatus();
  }

  // What follows from the sums. Precondition: one run or more.
  Status Finish(const Machine& machine) {
    section.symbols.insert(last_.begin(), last_.end());
    QUERN_RETURN_IF_ERROR(FinishLaunches());
    QUERN_RETURN_IF_ERROR(FinishKernels());
    FinishBlocks();
    section.memory = machine.LevelFor(section.working_set);
    return absl::OkStatus();
  }

  Section section;

 private:
  Status FinishLaunches() {
    const lir::Plan& plan = plan_.plan();
    for (const lir::Buffer& buffer : plan.buffers) {
      Buffer& row = section.buffers.emplace_back();
      row.name = buffer.name;
      row.home = lir::Name(buffer.home);
      row.type = kir::Print(buffer.type);
      QUERN_ASSIGN(row.bytes, buffer.bytes.Evaluate(last_));
      const bool placed = buffer.home == lir::Home::kArena || buffer.home == lir::Home::kOnce;
      if (placed) {
        QUERN_ASSIGN(row.offset, buffer.offset.Evaluate(last_));
      }
    }
    QUERN_ASSIGN(section.arena_bytes, plan.arena_bytes.Evaluate(last_));
    std::vector<int64_t> touched(plan.buffers.size());
    for (size_t l = 0; l < section.launches.size(); ++l) {
      Launch& launch = section.launches[l];
      const lir::Launch& from = plan.launches[l];
      const kir::Kernel& kernel = plan.kernels[launch.kernel];
      QUERN_ASSIGN(const kir::KernelCost* cost, costs_.Of(launch.kernel, last_));
      launch.block = BlockOf(Principal(kernel, *cost, launch.label));
      for (size_t p = 0; p < from.arguments.size(); ++p) {
        const int b = from.arguments[p].buffer;
        Argument& argument = launch.arguments.emplace_back();
        argument.param = kernel.params[p].name;
        argument.mode = ModeName(kernel.params[p].mode);
        argument.buffer = b;
        argument.read = cost->params[p].read;
        argument.written = cost->params[p].written;
        QUERN_ASSIGN(argument.offset, from.arguments[p].offset.Evaluate(last_));
        Buffer& buffer = section.buffers[b];
        if (buffer.first_launch < 0) buffer.first_launch = static_cast<int>(l);
        buffer.last_launch = static_cast<int>(l);
        touched[b] = std::max(touched[b], std::max(argument.read, argument.written));
      }
      launch.sums.typical = launch.sums.Median() * launch.sums.calls;
      section.sums.Add(launch.sums);
      section.kernels_wall += launch.sums.wall;
      section.busy += launch.sums.busy;
    }
    for (size_t b = 0; b < touched.size(); ++b) {
      section.working_set += touched[b];
      if (plan.buffers[b].home == lir::Home::kParam) section.weights += touched[b];
    }
    return absl::OkStatus();
  }

  Status FinishKernels() {
    std::vector<int> rows(plan_.plan().kernels.size(), -1);
    for (Launch& launch : section.launches) {
      const kir::Kernel& kernel = plan_.plan().kernels[launch.kernel];
      int& row = rows[launch.kernel];
      if (row < 0) {
        row = static_cast<int>(section.kernels.size());
        QUERN_ASSIGN(const kir::KernelCost* cost, costs_.Of(launch.kernel, last_));
        Kernel& made = section.kernels.emplace_back();
        made.symbol = plan_.kernel_symbols()[launch.kernel];
        made.family = kernel.name;
        made.label = MergedPath(launch.label);
        made.block = MergedPath(launch.block);
        made.sequential = kernel.sequential;
        made.estimate = cost->estimate;
        made.text = kir::Print(kernel);
        QUERN_ASSIGN(made.scratch_bytes, kir::ScratchBytes(kernel, {}));
        double all = 0;
        for (const double operations : cost->origins) all += operations;
        for (size_t o = 0; o < cost->origins.size(); ++o)
          made.origins.push_back({kernel.origins[o], all > 0 ? cost->origins[o] / all : 0});
      }
      launch.kernel = row;  // from here on among the section's
      ++section.kernels[row].launches;
      section.kernels[row].sums.Add(launch.sums);
    }
    return absl::OkStatus();
  }

  void FinishBlocks() {
    std::map<std::string, Block> blocks;
    for (const Launch& launch : section.launches) {
      Block& block = blocks[MergedPath(launch.block)];
      block.name = MergedPath(launch.block);
      ++block.launches;
      block.sums.Add(launch.sums);
    }
    for (auto& [name, block] : blocks) section.blocks.push_back(std::move(block));
    std::sort(section.blocks.begin(), section.blocks.end(), [](const Block& a, const Block& b) {
      return std::pair(-a.sums.typical, a.name) < std::pair(-b.sums.typical, b.name);
    });
  }

  const Executable& executable_;
  const BoundPlan& plan_;
  Costs costs_;
  Binding last_;
};

TimelineRun TimelineOf(const LoggedRun& run, const TickScale& scale, int64_t origin, const Signature& signature) {
  TimelineRun line;
  line.variant = run.variant;
  line.start = run.start_ns - origin;
  line.bind = run.bind_ns;
  if (!run.parts.empty()) {
    line.kernels_start = scale.Nanoseconds(run.parts.front().record.begin) - origin;
    line.kernels = scale.Nanoseconds(run.parts.back().record.end) - origin - line.kernels_start;
  }
  const Binding binding = BindingOf(signature, run.values);
  line.symbols.insert(binding.begin(), binding.end());
  for (const auto& [first, record] : run.parts) {
    for (int l = 0; l < static_cast<int>(record.dispatches()); ++l) {
      for (int w = 0; w < record.workers(); ++w) {
        const RunSlice& slice = record.at(w, l);
        if (slice.chunks == 0) continue;
        const int64_t start = scale.Nanoseconds(slice.begin) - origin;
        line.slices.push_back({first + l, w, start, scale.Nanoseconds(slice.end) - origin - start, slice.chunks});
      }
    }
  }
  return line;
}

std::vector<CompiledKernel> CompiledOf(const Executable& executable,
                                       const std::vector<Executable::CompiledVariant>& variants) {
  std::vector<CompiledKernel> compiled;
  for (const auto& [function, report] : executable.cache().objects()) {
    CompiledKernel& kernel = compiled.emplace_back();
    kernel.report = report;
    for (const Executable::CompiledVariant& variant : variants) {
      const BoundPlan* plan = executable.plan(variant.variant);
      if (plan == nullptr ||
          std::find(plan->functions().begin(), plan->functions().end(), function) == plan->functions().end())
        continue;
      kernel.variant = variant.variant;
      break;
    }
  }
  return compiled;
}

}  // namespace

StatusOr<Profile> Collect(const Executable& executable, RunLog& log, const std::vector<Phase>& phases, Machine machine,
                          Subject subject) {
  log.Finish();
  Profile profile;
  profile.model = std::move(subject.model);
  profile.machine = std::move(machine);
  profile.threads = executable.threads();
  profile.exact = subject.exact;
  profile.context = subject.context;
  profile.counters = std::move(subject.counters);
  const auto counted = [](const LoggedRun& run) { return !run.parts.empty() && run.parts[0].record.has_counts(); };
  profile.counted = std::any_of(log.runs().begin(), log.runs().end(), counted) && profile.counters.empty();
  profile.steps = std::move(subject.steps);
  profile.variants = executable.compiled();
  profile.compiled = CompiledOf(executable, profile.variants);

  profile.origin = INT64_MAX;
  for (const TimeSpan& step : profile.steps) profile.origin = std::min(profile.origin, step.start);
  for (const Executable::CompiledVariant& variant : profile.variants)
    profile.origin = std::min(profile.origin, variant.start);
  for (const LoggedRun& run : log.runs()) profile.origin = std::min(profile.origin, run.start_ns);
  for (const LoggedSpan& span : log.spans())
    profile.origin = std::min(profile.origin, log.scale().Nanoseconds(span.begin));

  std::map<std::pair<std::string, int>, std::unique_ptr<SectionBuilder>> builders;
  std::map<std::pair<std::string, int>, int64_t> warm_up;
  std::vector<std::pair<std::string, int>> order;
  for (const LoggedRun& run : log.runs()) {
    QUERN_CHECK(run.mark >= 0 && run.mark < static_cast<int>(phases.size()));
    const Phase& phase = phases[run.mark];
    const std::pair<std::string, int> key(phase.name, run.variant);
    if (executable.plan(run.variant) == nullptr)
      return absl::FailedPreconditionError("parameters were bound anew after the runs that were recorded");
    if (phase.warm_up) {
      ++warm_up[key];
      continue;
    }
    std::unique_ptr<SectionBuilder>& builder = builders[key];
    if (builder == nullptr) {
      builder = std::make_unique<SectionBuilder>(executable, phase, run.variant);
      order.push_back(key);
    }
    QUERN_RETURN_IF_ERROR(builder->Add(run, log.scale(), subject.token_symbol));
  }
  for (const auto& key : order) {
    QUERN_RETURN_IF_ERROR(builders[key]->Finish(profile.machine));
    builders[key]->section.warm_up_steps = warm_up[key];
    profile.sections.push_back(std::move(builders[key]->section));
  }
  for (const LoggedRun& run : log.runs()) {
    TimelineRun& line =
        profile.timeline.emplace_back(TimelineOf(run, log.scale(), profile.origin, executable.signature()));
    line.phase = phases[run.mark].name;
    line.warm_up = phases[run.mark].warm_up;
    line.step = static_cast<int64_t>(profile.timeline.size()) - 1;
    for (size_t s = 0; s < order.size(); ++s) {
      if (order[s] == std::pair(line.phase, line.variant)) line.section = static_cast<int>(s);
    }
  }
  for (const LoggedSpan& span : log.spans()) {
    const int64_t start = log.scale().Nanoseconds(span.begin);
    profile.spans.push_back({span.name, phases[span.mark].name, phases[span.mark].warm_up, start - profile.origin,
                             std::max<int64_t>(log.scale().Nanoseconds(span.end) - start, 0)});
  }
  std::sort(profile.spans.begin(), profile.spans.end(), [](const CallerSpan& a, const CallerSpan& b) {
    return std::pair(a.start, -a.duration) < std::pair(b.start, -b.duration);
  });
  for (int v = 0;; ++v) {
    const bool used = std::any_of(profile.timeline.begin(), profile.timeline.end(),
                                  [&](const TimelineRun& run) { return run.variant >= v; });
    if (!used) break;
    std::vector<std::string>& labels = profile.launch_labels.emplace_back();
    if (const BoundPlan* plan = executable.plan(v)) {
      for (const lir::Launch& launch : plan->plan().launches) labels.push_back(launch.label);
    }
  }
  return profile;
}

}  // namespace quern::profile
