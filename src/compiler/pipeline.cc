#include "compiler/pipeline.h"

#include <algorithm>
#include <span>

#include "base/diagnostic.h"
#include "base/stopwatch.h"
#include "ir/counted.h"
#include "opt/expand_nodes.h"
#include "opt/insert_qdq.h"
#include "opt/passes.h"

namespace quern::compiler {
namespace {

// What the steps work on. Each replaces `graph`.
struct Work {
  const PipelineOptions& options;
  StepTimes* times;
  ir::Graph graph;
  SymbolRanges guard;
  bool stopped = false;
};

// Blocks of threads take each row by itself.
StatusOr<ir::Graph> SortRows(const Work& work) {
  if (work.options.facts.blocks) return work.graph;
  return opt::MakePickedProducts(work.graph, QuantiseOptionsOf(work.options));
}

// Blocks of threads multiply by windows that they read where images have channels first.
StatusOr<ir::Graph> Layout(const Work& work) {
  if (work.options.facts.blocks) return work.graph;
  return opt::ChannelsLast(work.graph, {}, work.options.report);
}

// What the policy has spelled out stays so.
StatusOr<ir::Graph> Recognise(const Work& work) {
  if (work.options.kernels.all == opt::KernelChoice::kCommon) return work.graph;
  for (const auto& [op, choice] : work.options.kernels.by_op) {
    if (choice == opt::KernelChoice::kCommon) return work.graph;
  }
  return opt::RecogniseAttention(work.graph, {}, work.options.report);
}

// A guard may be wider than the graph: a model of a short context has no steps of 256 tokens.
SymbolRange Clipped(const ir::Graph& graph, std::string_view symbol, SymbolRange range) {
  if (const auto own = graph.symbols.find(symbol); own != graph.symbols.end()) {
    range.low = std::max(range.low, own->second.low);
    range.high = std::min(range.high, own->second.high);
  }
  return range;
}

StatusOr<ir::Graph> Narrow(const ir::Graph& graph, const SymbolRanges& guards) {
  Binding fixed;
  SymbolRanges ranges;
  for (const auto& [symbol, guard] : guards) {
    const SymbolRange range = Clipped(graph, symbol, guard);
    if (range.low == range.high)
      fixed[symbol] = range.low;
    else
      ranges[symbol] = range;
  }
  QUERN_ASSIGN(const ir::Graph narrowed, opt::NarrowRanges(graph, ranges));
  return opt::SubstituteSymbols(narrowed, fixed);
}

struct Step {
  const char* name;
  const char* reason;
  StatusOr<ir::Graph> (*run)(Work&);
};

// Passes that do not depend on sizes, once for a model.
constexpr Step kPrepare[] = {
    {"insert_qdq", "what the quantisation map names is bytes where products read it; other steps name values anew",
     [](Work& w) { return opt::InsertQdq(w.graph); }},
    {"expand_bodies", "functions in ops stand for their bodies, which every other step then sees",
     [](Work& w) { return opt::ExpandBodies(w.graph); }},
    {"choose_kernels", "ops with a kernel of their own are other ops where the policy asks for that",
     [](Work& w) { return opt::ChooseKernels(w.graph, w.options.kernels); }},
    {"propagate_qdq", "pairs of QuantizeLinear and DequantizeLinear stand beside products, whatever moves elements",
     [](Work& w) { return opt::PropagateQdq(w.graph); }},
    {"integer_products", "products of bytes are added up in integers",
     [](Work& w) { return opt::IntegerProducts(w.graph); }},
    {"channels_last", "convolutions multiply rows of windows where channels are neighbours",
     [](Work& w) { return Layout(w); }},
    {"expand_composites", "fused ops are names; code generation sees primitives",
     [](Work& w) { return opt::ExpandComposites(w.graph); }},
    {"simplify", "identities that expansion and builders leave behind", [](Work& w) { return opt::Simplify(w.graph); }},
    {"byte_tables", "functions of a byte are looked up where they have an exp or its like",
     [](Work& w) { return w.options.facts.blocks ? w.graph : opt::ByteTables(w.graph); }},
    {"fold_constants", "what depends on constants alone is data", [](Work& w) { return opt::FoldConstants(w.graph); }},
    {"hoist_weights", "products read rows of K or panels: weights are put so once per binding",
     [](Work& w) {
       return opt::HoistWeights(w.graph, {.panels = !w.options.facts.blocks, .pairs = w.options.facts.bf16_pairs});
     }},
    {"quantise_activations", "int8 dot products beside block-format weights, once per value and format",
     [](Work& w) { return opt::QuantiseActivations(w.graph, QuantiseOptionsOf(w.options)); }},
    {"cse", "shared sub-expressions, quantised activations among them", [](Work& w) { return opt::Cse(w.graph); }},
    {"dce", "what no output needs", [](Work& w) { return opt::Dce(w.graph); }},
};
// Steps that a guard over the symbols decides.
constexpr Step kVariant[] = {
    {"narrow_symbols", "sizes that the guard fixes become constants", [](Work& w) { return Narrow(w.graph, w.guard); }},
    {"unify_sizes", "sizes that must be equal are one symbol to kernels",
     [](Work& w) { return opt::UnifySizes(w.graph); }},
    {"picked_products", "many rows by picked matrices are runs of rows, a product each",
     [](Work& w) { return SortRows(w); }},
    {"recognise_attention", "attention spelled out in ops needs no scores in memory",
     [](Work& w) { return Recognise(w); }},
    {"short_sums", "products of few terms are bound by their results", [](Work& w) { return opt::ShortSums(w.graph); }},
    {"repeat_dequantised", "floats that stand for bytes are not written to memory for several readers",
     [](Work& w) { return opt::RepeatDequantised(w.graph); }},
    {"donate_carries", "caches that loops carry are written in place",
     [](Work& w) { return opt::DonateCarries(w.graph); }},
    {"fuse_regions", "every op goes into a region that becomes kernels",
     [](Work& w) {
       return opt::FuseRegions(w.graph, {codegen::Families(), w.options.facts, w.options.fuse}, w.options.report);
     }},
};

void AddTime(const PipelineOptions& options, StepTimes* times, std::string_view name, const Stopwatch& watch) {
  const TimeSpan span = watch.Span(name);
  if (options.spans != nullptr) options.spans->push_back(span);
  if (times == nullptr) return;
  const double seconds = static_cast<double>(span.duration) * 1e-9;
  const auto found = std::find_if(times->begin(), times->end(), [&](const auto& entry) { return entry.first == name; });
  if (found != times->end())
    found->second += seconds;
  else
    times->emplace_back(name, seconds);
}

Status RunSteps(std::span<const Step> steps, Work& work) {
  for (const Step& step : steps) {
    if (work.stopped) break;
    const std::vector<std::string>& skip = work.options.skip;
    if (std::find(skip.begin(), skip.end(), step.name) != skip.end()) continue;
    const Stopwatch watch;
    StatusOr<ir::Graph> result = step.run(work);
    if (!result.ok())
      return WithMessage(result.status(), absl::StrFormat("%s: %s", step.name, std::string(result.status().message())));
    work.graph = *std::move(result);
    if (work.options.verify_steps) QUERN_RETURN_IF_ERROR(ir::Verify(work.graph));
    AddTime(work.options, work.times, step.name, watch);
    if (work.options.after_step) work.options.after_step(step.name, work.graph);
    work.stopped = work.options.stop_after == step.name;
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<ir::Graph> PrepareGraph(const hir::Module& module, const PipelineOptions& options, StepTimes* times) {
  const Stopwatch watch;
  QUERN_ASSIGN(ir::Graph lowered, hir::Lower(module));
  AddTime(options, times, "lower", watch);
  if (options.after_step) options.after_step("lower", lowered);
  Work work{options, times, std::move(lowered), {}, options.stop_after == "lower"};
  QUERN_RETURN_IF_ERROR(RunSteps(kPrepare, work));
  QUERN_RETURN_IF_ERROR(ir::Verify(work.graph));
  return std::move(work.graph);
}

StatusOr<std::vector<SymbolRanges>> PossibleGuards(const ir::Graph& graph, std::vector<SymbolRanges> guards) {
  for (const auto& [symbol, most] : ir::AllCountedSizes(graph)) {
    for (const SymbolRanges& guard : guards) {
      if (!guard.contains(symbol)) continue;
      return ToStatus({DiagnosticCode::kUnsupported, "", absl::StrCat("a guard of ", symbol),
                       "one of a size that is given", "of a size that runs find", graph.name});
    }
  }
  std::vector<SymbolRanges> possible;
  Status conflict;
  for (SymbolRanges& guard : guards) {
    SymbolRanges ranges = graph.symbols;
    for (const auto& [symbol, range] : guard) {
      if (ranges.contains(symbol)) ranges[symbol] = Clipped(graph, symbol, range);
    }
    const Status status = opt::CheckSizes(graph, ranges);
    if (status.ok())
      possible.push_back(std::move(guard));
    else
      conflict = status;
  }
  if (possible.empty()) return conflict;
  return possible;
}

StatusOr<PlannedVariant> FuseVariant(const ir::Graph& graph, const SymbolRanges& guard, const PipelineOptions& options,
                                     StepTimes* times) {
  Work work{options, times, graph, guard, false};
  QUERN_RETURN_IF_ERROR(RunSteps(kVariant, work));
  QUERN_RETURN_IF_ERROR(ir::Verify(work.graph));
  return PlannedVariant{std::move(work.graph), {}};
}

Status AddPlan(PlannedVariant& variant, const PipelineOptions& options, StepTimes* times) {
  const Stopwatch watch;
  QUERN_ASSIGN(variant.plan, lir::BuildPlan(variant.graph, variant.graph.symbols, options.facts));
  AddTime(options, times, "plan", watch);
  return absl::OkStatus();
}

StatusOr<PlannedVariant> PlanVariant(const ir::Graph& graph, const SymbolRanges& guard, const PipelineOptions& options,
                                     StepTimes* times) {
  QUERN_ASSIGN(PlannedVariant variant, FuseVariant(graph, guard, options, times));
  QUERN_RETURN_IF_ERROR(AddPlan(variant, options, times));
  return variant;
}

std::vector<std::string_view> StepNames() {
  std::vector<std::string_view> names = {"lower"};
  for (const Step& step : kPrepare) names.push_back(step.name);
  for (const Step& step : kVariant) names.push_back(step.name);
  names.push_back("plan");
  return names;
}

}  // namespace quern::compiler
