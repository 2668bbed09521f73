#include "ir/op.h"

#include <algorithm>

namespace quern::ir {

#define QUERN_OP(stem) const OpDef& Op_##stem();
#include "ir_ops.inc"
#undef QUERN_OP

std::span<const OpDef* const> Ops() {
  static const std::vector<const OpDef*>* const ops = [] {
    auto* table = new std::vector<const OpDef*>{
#define QUERN_OP(stem) &Op_##stem(),
#include "ir_ops.inc"
#undef QUERN_OP
    };
    std::sort(table->begin(), table->end(),
              [](const OpDef* a, const OpDef* b) { return std::string_view(a->name) < std::string_view(b->name); });
    return table;
  }();
  return *ops;
}

const OpDef* FindOp(std::string_view name) {
  const std::span<const OpDef* const> ops = Ops();
  const auto it = std::lower_bound(ops.begin(), ops.end(), name,
                                   [](const OpDef* op, std::string_view n) { return std::string_view(op->name) < n; });
  return it != ops.end() && (*it)->name == name ? *it : nullptr;
}

std::optional<Takeover> TakeoverOf(const Node& node) {
  if (node.op->kind == OpKind::kWrite) return Takeover{};
  return node.op->takes_over;
}

std::optional<Extent> ViewStart(const Graph& graph, const Node& node) {
  if (node.op->strides == nullptr) return std::nullopt;
  const std::optional<Strides> made = node.op->strides(node, Strides::Dense(graph.type(node.inputs[0]).dims));
  if (!made || !made->IsDense()) return std::nullopt;
  return made->offset;
}

bool IsReshape(const Graph& graph, const Node& node) {
  return node.op->strides != nullptr && graph.type(node.inputs[0]).elements() == node.results[0].elements() &&
         ViewStart(graph, node) == Extent(0);
}

}  // namespace quern::ir
