// Quantisation of rows, as the formats do it (BlockFormat::quantise), which is ggml's reference encoders': of q8_0 and
// q8_K, the formats of activations, the meaning of every `pack` to these.
//
//   q8_0, blocks of 32:   d = max|x| / 127, kept as f16;  q = round-half-away(x * (1 / d)), 1 / d of the f32 d
//   q8_K, blocks of 256:  m = the x of largest |x|, the first of equals;  s = -127 / m;
//                         q = min(127, round-half-even(s x)), d = 1 / s as f32; an all-zero block has d = 0
// Sums are of the quants: of 32 (q8_0, @planar only) or of 16 (q8_K). The scales of a planar q8_0 row are the f16
// values widened, so both layouts decode to the same numbers.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace quern::kir {

// One encoded block of activations, before any layout.
struct QuantisedBlock {
  float d = 0;
  int8_t quants[256] = {};
};
QuantisedBlock QuantiseBlock(DType dtype, const float* x);

// k elements, a multiple of the block, to a row @blocks of any format that has a quantiser.
void QuantiseToBlocks(DType dtype, const float* x, int64_t k, uint8_t* row);
// The same of a whole row by the importance of each of its elements, where that makes a difference to the format.
void QuantiseToBlocksBy(DType dtype, const float* x, const float* importance, int64_t k, uint8_t* row);

// k elements to columns [start, start + k) of a planar row of row_k elements. Both multiples of the block.
void QuantiseToPlanar(DType dtype, const float* x, int64_t k, uint8_t* row, int64_t row_k, int64_t start);
// The same from a row @blocks of the same format: a change of layout only.
void BlocksToPlanar(DType dtype, const uint8_t* blocks, int64_t k, uint8_t* row, int64_t row_k, int64_t start);

}  // namespace quern::kir
