#include "kir/running.h"

#include "kir/walk.h"

namespace quern::kir {

std::optional<ReduceOp> RunningOp(const Assign& assign) {
  const auto* apply = std::get_if<Apply>(&assign.value->node);
  if (apply == nullptr || apply->args.size() != 2 || !IsName(apply->args[0], assign.name)) return std::nullopt;
  if (AnyExpr(apply->args[1], [&](const ExprRef& node) { return IsName(node, assign.name); })) return std::nullopt;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
    if (apply->op == CombineOp(op)) return op;
  }
  return std::nullopt;
}

}  // namespace quern::kir
