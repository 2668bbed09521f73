// GatedDeltaNet: the op of that name. The state operand makes the carry form.

#include "hir/op_block.h"

namespace quern::hir {

const BlockDef& Block_gated_delta_net() {
  static const BlockDef* const block = Make(OpBlock("GatedDeltaNet", "gated_delta_net", "gated_delta_net_carry"));
  return *block;
}

}  // namespace quern::hir
