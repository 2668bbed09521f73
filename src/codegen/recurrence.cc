#include "codegen/recurrence.h"

namespace quern::codegen {

family::Matched MatchRecurrence(const family::RegionView& view, std::string_view name) {
  int root = -1;
  for (const int n : view.nodes()) {
    const ir::Node& node = view.node(n);
    if (ir::IsRoot(node, name) && root < 0) {
      root = n;
      continue;
    }
    if (node.op->kind != ir::OpKind::kElementwise && node.op->kind != ir::OpKind::kIndex)
      return family::No("%s cannot be part of a recurrence", view.Describe(n));
    if (node.op->kind == ir::OpKind::kElementwise && !ir::IsCast(node))
      return family::No("%s would be computed for every block of lanes", view.Describe(n));
  }
  if (view.facts.blocks) return family::No("%s has no schedule for blocks of threads", view.Describe(root));
  for (const ir::Value& result : view.results()) {
    if (result.node != root) return family::No("%s is used outside of the recurrence", view.Describe(result.node));
  }
  return family::Matched(std::make_unique<family::RegionPlan>());
}

}  // namespace quern::codegen
