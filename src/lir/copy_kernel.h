// A kernel that copies a dense value: for outputs that are no region's own result.
#pragma once

#include "base/status.h"
#include "ir/type.h"
#include "kir/kir.h"

namespace quern::lir {

//   kernel copy ( x : f32[4*SEQ] in   y : f32[4*SEQ] out ) sym SEQ in 1..8 {
//     grid b in 0..4*SEQ by 65536 { vec i in b..min(b + 65536, 4*SEQ) { y[i] = x[i] } }
//   }
// Errors: Unimplemented for block formats.
StatusOr<kir::Kernel> CopyKernel(const ir::TensorType& type, const SymbolRanges& ranges);

}  // namespace quern::lir
