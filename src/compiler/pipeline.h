// From blocks to a plan: every step of the way by name.
//
// PrepareGraph runs once for a model; PlanVariant once for each guard over its symbols. The names of the steps are the
// timers, and what dumps, stops and skips refer to.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time_span.h"
#include "codegen/region.h"
#include "hir/module.h"
#include "ir/graph.h"
#include "lir/plan.h"
#include "opt/choose_kernels.h"
#include "opt/fusion_report.h"
#include "opt/passes.h"

namespace quern::compiler {

struct PipelineOptions {
  opt::KernelPolicy kernels;      // which form logical kernels take
  bool exact = false;             // keep f32 activations beside quantised weights
  bool fuse = true;               // false: every op is a kernel of its own, to compare with
  bool verify_steps = false;      // check the graph after every step, not only at the end: tests, debugging
  std::vector<std::string> skip;  // steps to leave out
  std::string stop_after;         // the last step to run; empty: all
  // Called after each step with its name and the graph it made.
  std::function<void(std::string_view step, const ir::Graph& graph)> after_step;
  family::TargetFacts facts;
  std::shared_ptr<TimeSpans> spans;     // takes the time of each step; may be null
  opt::FusionReport* report = nullptr;  // takes what was fused and what was not, which is asked of the families again
};

// What activations become beside weights. Blocks of threads decode weights in registers, beside activations as they
// are.
inline opt::QuantiseOptions QuantiseOptionsOf(const PipelineOptions& options) {
  const bool blocks = options.facts.blocks.has_value();
  return {.exact = options.exact || blocks, .as_bf16 = options.facts.bf16_tiles && !options.exact && !blocks};
}

// Seconds by step, in order; steps that run for several variants add up.
using StepTimes = std::vector<std::pair<std::string, double>>;

// Lowers the module and runs every pass that does not depend on sizes. The graph verifies.
StatusOr<ir::Graph> PrepareGraph(const hir::Module& module, const PipelineOptions& options, StepTimes* times = nullptr);

struct PlannedVariant {
  ir::Graph graph;  // fused
  lir::Plan plan;
};
// Those of the guards that some sizes meet: what the graph requires of its sizes may leave none. Error: kSizeConflict
// when none is left.
StatusOr<std::vector<SymbolRanges>> PossibleGuards(const ir::Graph& graph, std::vector<SymbolRanges> guards);

// `graph` for the values of symbols in `guard` (symbols not named keep their range), fused; no plan yet.
StatusOr<PlannedVariant> FuseVariant(const ir::Graph& graph, const SymbolRanges& guard, const PipelineOptions& options,
                                     StepTimes* times = nullptr);
// Plans what FuseVariant made.
Status AddPlan(PlannedVariant& variant, const PipelineOptions& options, StepTimes* times = nullptr);
// Both.
StatusOr<PlannedVariant> PlanVariant(const ir::Graph& graph, const SymbolRanges& guard, const PipelineOptions& options,
                                     StepTimes* times = nullptr);

// Names of all steps, in order.
std::vector<std::string_view> StepNames();

}  // namespace quern::compiler
