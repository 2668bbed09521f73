// The tile ops of an attention step: one for each pair of dtypes that keys and values have, and for queries in pairs.
//
//   flash_step_f16 o, m, l += q, k, v, lo, hi, bias scale 0.125, softcap 30.0     q : f32[r, d]   k, v : f16[t, d]
//   flash_step_f16_f32                                                            v : f32[t, d]
//   flash_step_bf16_pairs                                                         q, k, v : bf16
//
// o is the output before its division by l, m the running maximum of the scores (start at -inf), l the running sum. Row
// i attends the keys lo[i] <= key < hi[i] of this tile; a row without any leaves o, m, l as they are. The score is
// scale q.k, then softcap tanh(score / softcap) unless softcap is 0, then plus bias. A key whose bias is -inf takes no
// part, like one outside of the range, whatever it holds; a NaN in any other makes the row NaN. `many` (1) says that
// the rows are some of many: the bits of each are its own, however many of them are here.
//
// Queries of f32 meet keys of any of the dtypes element by element, as floats. Those of bf16 meet keys of bf16 in
// pairs, whose sums are those of mma_bf16_pairs.
#pragma once

#include <string>
#include <vector>

#include "kir/tile_op.h"

namespace quern::kir {

// The ops are kept for as long as the process.
std::vector<const TileOp*> FlashSteps();

// The dtype in which an attention step takes queries of `q` beside keys of `k`: bf16 in pairs, everything else as f32.
DType FlashQueries(DType q, DType k);
// The op for queries of FlashQueries.
std::string FlashStepName(DType q, DType k, DType v);

}  // namespace quern::kir
