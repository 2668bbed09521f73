#include "compiler/variants.h"

namespace quern::compiler {

std::vector<Variant> VariantsOf(std::shared_ptr<PreparedGraph> graph, std::span<const SymbolRanges> guards,
                                const PipelineOptions& pipeline, const VariantHook& planned) {
  std::vector<Variant> variants;
  for (const SymbolRanges& guard : guards) {
    const int index = static_cast<int>(variants.size());
    variants.push_back({guard, [graph, guard, pipeline, planned, index]() -> StatusOr<lir::Plan> {
                          QUERN_ASSIGN(const ir::Graph* const prepared, graph->Get());
                          QUERN_ASSIGN(PlannedVariant variant, PlanVariant(*prepared, guard, pipeline));
                          if (planned) planned(index, std::move(variant.graph));
                          return std::move(variant.plan);
                        }});
  }
  return variants;
}

}  // namespace quern::compiler
