#include "profile/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "profile/text_table.h"

namespace quern::profile {
namespace {

// Ops of a kernel that a row names.
constexpr size_t kOpsInRow = 3;

std::string Fixed(double value, int digits) { return absl::StrFormat("%.*f", digits, value); }
std::string Ms(int64_t ns) { return Fixed(static_cast<double>(ns) * 1e-6, 3); }
std::string Us(int64_t ns) { return Fixed(static_cast<double>(ns) * 1e-3, 2); }

// "layers.*/ffn/down: MatMul" -> "down: MatMul": what the column of blocks does not say.
std::string ShortOp(const std::string& op) {
  const size_t colon = op.find(':'), slash = op.substr(0, colon).rfind('/');
  return slash == std::string::npos ? op : op.substr(slash + 1);
}

std::string Ops(const Kernel& kernel) {
  std::vector<Origin> origins = kernel.origins;
  std::sort(origins.begin(), origins.end(),
            [](const Origin& a, const Origin& b) { return std::pair(-a.share, a.op) < std::pair(-b.share, b.op); });
  std::string text;
  for (size_t o = 0; o < std::min(origins.size(), kOpsInRow); ++o)
    absl::StrAppend(&text, o == 0 ? "" : ", ", ShortOp(origins[o].op));
  if (origins.size() > kOpsInRow) absl::StrAppend(&text, ", and ", origins.size() - kOpsInRow, " more");
  return text.empty() ? kernel.label : text;
}

double Share(const Section& section, int64_t ns) {
  const int64_t all = section.wall + section.bind;
  return all > 0 ? 100 * static_cast<double>(ns) / static_cast<double>(all) : 0;
}

// The columns that kernels and blocks share, after their name.
std::vector<std::string> Figures(const Profile& profile, const Section& section, const Sums& sums) {
  const Rates rates = profile.RatesOf(sums, section);
  const double per_call = sums.calls > 0 ? static_cast<double>(sums.wall) / static_cast<double>(sums.calls) * 1e-3 : 0;
  return {Fixed(Share(section, sums.wall), 1),
          Us(sums.Median()),
          Us(sums.least),
          absl::StrCat(Fixed(per_call, 2), sums.Disturbed() ? "!" : " "),
          absl::StrCat(sums.calls),
          Fixed(rates.percent, 1),
          std::string(Name(rates.bound)),
          Ms(sums.wall),
          Fixed(rates.gflops, 1),
          Fixed(rates.gbps, 1)};
}

TextTable FigureTable(const char* first, std::vector<std::string> rest) {
  // In the order of what a reader needs: the right ones are left out where the terminal is narrow.
  std::vector<std::string> names = {first,     ">share %", ">median us", ">least us", ">mean us ", ">calls",
                                    ">% peak", "bound",    ">total ms",  ">GFLOP/s",  ">GB/s"};
  names.insert(names.end(), rest.begin(), rest.end());
  return TextTable(std::move(names));
}

void Append(std::vector<std::string>& row, std::vector<std::string> more) {
  row.insert(row.end(), more.begin(), more.end());
}

std::string KernelRows(const Profile& profile, const Section& section, const TableOptions& options) {
  const int top = options.top;
  TextTable table = FigureTable("kernel", {"block", "ops"});
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : section.kernels) kernels.push_back(&kernel);
  std::sort(kernels.begin(), kernels.end(), [](const Kernel* a, const Kernel* b) {
    return std::pair(-a->sums.typical, a->symbol) < std::pair(-b->sums.typical, b->symbol);
  });
  Sums others;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const Kernel& kernel = *kernels[k];
    if (top > 0 && k >= static_cast<size_t>(top)) {
      others.Add(kernel.sums);
      continue;
    }
    std::vector<std::string> row = {
        absl::StrCat(kernel.symbol, kernel.sequential ? " (seq)" : "", kernel.estimate ? " ~" : "")};
    Append(row, Figures(profile, section, kernel.sums));
    Append(row, {kernel.block, Ops(kernel)});
    table.Add(std::move(row));
  }
  if (others.calls > 0) {
    std::vector<std::string> row = {absl::StrCat("(", kernels.size() - static_cast<size_t>(top), " more)")};
    Append(row, Figures(profile, section, others));
    table.Add(std::move(row));
  }
  const auto outside = [&](const char* name, int64_t ns) {
    table.Add({name, Fixed(Share(section, ns), 1), "", "", "", "", "", "", Ms(ns)});
  };
  outside("(dispatch)", section.dispatch());
  outside("(bind)", section.bind);
  return table.Text(options.columns);
}

std::string BlockRows(const Profile& profile, const Section& section, const TableOptions& options) {
  TextTable table = FigureTable("block", {});
  for (const Block& block : section.blocks) {
    std::vector<std::string> row = {block.name.empty() ? "(no block)" : block.name};
    Append(row, Figures(profile, section, block.sums));
    table.Add(std::move(row));
  }
  return table.Text(options.columns);
}

std::string CounterRows(const Section& section, const TableOptions& options) {
  std::vector<std::string> names = {"kernel"};
  for (const CounterEvent& event : HardwareCounters()) names.push_back(absl::StrCat(">", event.name));
  names.push_back(">instructions/cycle");
  TextTable table(std::move(names));
  for (const Kernel& kernel : section.kernels) {
    std::vector<std::string> row = {kernel.symbol};
    for (const uint64_t count : kernel.sums.counts) row.push_back(absl::StrCat(count));
    const auto cycles = static_cast<double>(std::max<uint64_t>(kernel.sums.counts[0], 1));
    row.push_back(Fixed(static_cast<double>(kernel.sums.counts[1]) / cycles, 2));
    table.Add(std::move(row));
  }
  return table.Text(options.columns);
}

// What the mean of the steps hides, or nothing.
std::string DisturbanceText(const Section& section) {
  const auto disturbed = std::count_if(section.kernels.begin(), section.kernels.end(),
                                       [](const Kernel& kernel) { return kernel.sums.Disturbed(); });
  if (!section.step.Disturbed() && disturbed == 0) return "";
  return absl::StrCat("something else ran meanwhile: means of ",
                      section.step.Disturbed() ? "whole steps" : absl::StrCat(disturbed, " kernels (!)"),
                      " are 1.3 times their medians or more. Order, rates and % peak are of medians\n");
}

std::string SectionText(const Profile& profile, const Section& section, const TableOptions& options) {
  const int64_t step_ns = section.wall + section.bind, worker_ns = section.wall * profile.threads;
  const double idle =
      worker_ns > 0 ? 100 * static_cast<double>(worker_ns - section.busy) / static_cast<double>(worker_ns) : 0;
  std::string text = absl::StrFormat("%s (%s): %d steps after %d to warm up, %.3f ms a step", section.phase,
                                     section.guard, section.steps, section.warm_up_steps,
                                     static_cast<double>(step_ns) * 1e-6 / static_cast<double>(section.steps));
  if (section.tokens > 0)
    absl::StrAppendFormat(&text, ", %.1f tokens/s",
                          static_cast<double>(section.tokens) * 1e9 / static_cast<double>(step_ns));
  const MemoryLevel& level = profile.machine.memory[section.memory];
  absl::StrAppendFormat(&text,
                        "\na step: median %.3f ms, quickest %.3f, slowest %.3f\n%s"
                        "a step touches %.2f MB, %.2f MB of them weights: held against %s at %.1f GB/s; threads are "
                        "idle %.1f %% of the time\n\n",
                        static_cast<double>(section.step.Median()) * 1e-6,
                        static_cast<double>(section.step.least) * 1e-6, static_cast<double>(section.step.most) * 1e-6,
                        DisturbanceText(section), static_cast<double>(section.working_set) * 1e-6,
                        static_cast<double>(section.weights) * 1e-6, level.name, level.gbps, idle);
  absl::StrAppend(&text, KernelRows(profile, section, options), "\n", BlockRows(profile, section, options), "\n");
  if (profile.counted) absl::StrAppend(&text, CounterRows(section, options), "\n");
  return text;
}

std::string SpansText(const Profile& profile, const TableOptions& options) {
  const std::vector<SpanSums> rows = profile.SumsOfSpans();
  if (rows.empty()) return "";
  TextTable table({"span", "phase", ">times", ">ms", ">ms each", ">least", ">most"});
  for (const SpanSums& row : rows) {
    table.Add({row.name, row.phase, absl::StrCat(row.count), Ms(row.wall), Ms(row.wall / row.count), Ms(row.least),
               Ms(row.most)});
  }
  return absl::StrCat("the caller's own:\n\n", table.Text(options.columns), "\n");
}

std::string CompileText(const Profile& profile, const TableOptions& options) {
  const int top = options.top;
  TextTable steps({"step", ">ms"});
  std::vector<std::pair<std::string, int64_t>> sums;  // steps of several variants are one row
  for (const TimeSpan& step : profile.steps) {
    const auto found = std::find_if(sums.begin(), sums.end(), [&](const auto& row) { return row.first == step.name; });
    if (found == sums.end())
      sums.emplace_back(step.name, step.duration);
    else
      found->second += step.duration;
  }
  int64_t code = 0;
  for (const Executable::CompiledVariant& variant : profile.variants) code += variant.compiled - variant.planned;
  sums.emplace_back("machine code", code);
  for (const auto& [name, ns] : sums) steps.Add({name, Ms(ns)});

  TextTable kernels({"kernel", ">emit", ">link", ">optimise", ">codegen", ">jitlink", ">total ms", ">bytes", ""});
  std::vector<const jit::ObjectReport*> order;
  for (const CompiledKernel& kernel : profile.compiled) order.push_back(&kernel.report);
  const auto total = [](const jit::ObjectReport& r) {
    return r.times.emit + r.times.link + r.times.optimise + r.times.codegen + r.jitlink;
  };
  std::sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
    return std::pair(-total(*a), a->symbol) < std::pair(-total(*b), b->symbol);
  });
  if (top > 0 && order.size() > static_cast<size_t>(top)) order.resize(static_cast<size_t>(top));
  for (const jit::ObjectReport* r : order) {
    kernels.Add({r->symbol, Ms(r->times.emit), Ms(r->times.link), Ms(r->times.optimise), Ms(r->times.codegen),
                 Ms(r->jitlink), Ms(total(*r)), absl::StrCat(r->bytes), r->loaded ? "from the cache" : ""});
  }
  return absl::StrCat("compile:\n\n", steps.Text(options.columns), "\n", kernels.Text(options.columns),
                      order.size() < profile.compiled.size() ? "  ...\n" : "");
}

}  // namespace

std::string TableText(const Profile& profile, const TableOptions& options) {
  const Machine& machine = profile.machine;
  std::string text = absl::StrFormat("%s: %d thread%s of %s at level %s\npeaks (%s): ", profile.model, profile.threads,
                                     profile.threads == 1 ? "" : "s", machine.cpu, machine.level,
                                     machine.stored       ? "measured earlier"
                                     : machine.rounds > 1 ? "the best of now and earlier"
                                                          : "measured now");
  for (const MemoryLevel& level : machine.memory)
    absl::StrAppendFormat(&text, "%s %.1f GB/s, ", level.name, level.gbps);
  absl::StrAppendFormat(&text,
                        "f32 %.0f GFLOP/s, bf16 %.0f GFLOP/s, int8 %.0f GOP/s, %.0f ns from one launch to the next\n",
                        machine.f32_gflops, machine.bf16_gflops, machine.int8_gops, machine.dispatch_ns);
  if (!profile.counted) absl::StrAppend(&text, "hardware counters: ", profile.counters, "\n");
  text += "\n";
  for (const Section& section : profile.sections) text += SectionText(profile, section, options);
  return text + SpansText(profile, options) + CompileText(profile, options);
}

}  // namespace quern::profile
