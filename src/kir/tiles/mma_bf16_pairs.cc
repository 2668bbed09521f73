// GEMM micro-tile: a few rows of bf16 against one panel of at most 32 rows of a weight, in pairs along k.
//
//   mma_bf16_pairs c += x, w      c : f32[m, n]   x : bf16[m, k]   w : u32[n, p] @kn32
//
// A word of w has two neighbours along k, the first in its low half; k past the last word is not multiplied. Products
// are exact; a target may add the two of a pair to the sum in either order or at once, and take denormals for 0.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_bf16_pairs() {
  static const TileOp op = {
      .name = "mma_bf16_pairs",
      .doc = "c += x w^T for one panel of 32 rows of bf16 pairs",
      .tiles = {{"c", DType::kF32, {"m", "n"}}},
      .operands = {{"x", DType::kBF16, {"m", "k"}}, {"w", DType::kU32, {"n", "p"}, Layout::kKn32}},
      .sizes = {"m", "n", "k", "p"},
      .attributes = {},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..min(k, 2 * p) {
          cast<f32>(x[r, i]) * bits<f32>(select(i % 2 == 0, w[j, i / 2] << 16, (w[j, i / 2] >> 16) << 16))
        })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_mma_bf16_pairs",
      .work = PairProduct,
      .starts = true,
  };
  return op;
}

}  // namespace quern::kir
