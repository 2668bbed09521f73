#include "ir/logical.h"

#include "ir/spell_attention.h"

namespace quern::ir {

const OpDef& Op_attention();

std::span<const LogicalKernel> LogicalKernels() {
  static const LogicalKernel kernels[] = {
      {&Op_attention(), [](const Node& node) { return IsSpellable(node.attributes); }, SpellAttention}};
  return kernels;
}

const LogicalKernel* FindLogical(const OpDef& op) {
  for (const LogicalKernel& kernel : LogicalKernels()) {
    if (kernel.op == &op) return &kernel;
  }
  return nullptr;
}

bool LacksKernel(const Node& node) { return node.op->kind != OpKind::kComposite && IsExpanded(node); }

}  // namespace quern::ir
