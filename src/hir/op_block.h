// Blocks that are one op of the same name: operands, attributes and meaning are those of the op table.
#pragma once

#include "hir/block.h"

namespace quern::hir {

// The block of the op `op`. `carry_label`: the default label where the last operand, the state of a step before, is
// given; null where there is none. For the table it is to be given to Make.
BlockDef OpBlock(const char* op, const char* label, const char* carry_label = nullptr);
// What such a block infers, and makes of `operands`: those up to the first that is absent.
StatusOr<std::vector<TensorType>> InferOpBlock(const InferContext& c);
StatusOr<std::vector<ir::Value>> LowerOpBlock(LowerContext& c, std::vector<ir::Value> operands);

}  // namespace quern::hir
