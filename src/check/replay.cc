#include "check/replay.h"

#include "check/checker.h"
#include "check/region_graph.h"
#include "check/value.h"

namespace quern::check {

StatusOr<std::optional<Finding>> Replay(const Reproduction& reproduction, const Planned& planned,
                                        ExecutableOptions options) {
  Checker checker({.kind = reproduction.kind,
                   .facts = planned.facts,
                   .cache = options.cache,
                   .substitute = options.stepping.substitute,
                   .edit_plan = planned.edit_plan});
  checker.SetGraph(0, planned.fused);
  options.stepping.observer = &checker;
  const auto ran = RunCase(planned.fused, planned.plan, reproduction.sizes, reproduction.bytes, std::move(options));
  if (checker.finding()) return checker.finding();
  if (!ran.ok()) return ran.status();
  if (reproduction.kind == Kind::kNan) return std::optional<Finding>();
  QUERN_ASSIGN(const ir::Graph meaning, InlineRegions(planned.meaning));
  QUERN_ASSIGN(const ir::Feeds feeds, FeedsOf(meaning, reproduction.sizes, reproduction.bytes));
  QUERN_ASSIGN(GraphOracle oracle, GraphOracle::Create(meaning, reproduction.sizes, feeds, 1));
  for (int o = 0; o < static_cast<int>(ran->outputs.size()); ++o) {
    QUERN_ASSIGN(const ir::RefTensor got, Decode(meaning.type(meaning.outputs[o]), false, ran->sizes, ran->outputs[o]));
    QUERN_ASSIGN(const std::optional<Difference> worst, oracle.Worst(o, got));
    if (!worst) continue;
    QUERN_ASSIGN(const Evaluation values, Evaluate(meaning, reproduction.sizes, feeds));
    return FindingOf(meaning, *worst, values);
  }
  return std::optional<Finding>();
}

}  // namespace quern::check
