// mma_f32 of doubles: a few rows against one panel of at most 32 rows of a right side.
//
//   mma_f64 c += x, w      c : f64[m, n]   x : f64[m, k]   w : f64[n, k] @kn32
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_f64() {
  static const TileOp op = {
      .name = "mma_f64",
      .doc = "c += x w^T for one f64 panel of 32 rows",
      .tiles = {{"c", DType::kF64, {"m", "n"}}},
      .operands = {{"x", DType::kF64, {"m", "k"}}, {"w", DType::kF64, {"n", "k"}, Layout::kKn32}},
      .sizes = {"m", "n", "k"},
      .attributes = {},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..k { x[r, i] * w[j, i] })
      }
    }
  )",
      .rtol = 1e-14,
      .symbol = "qk_mma_f64",
      .work = FloatProduct,
      .starts = true,
  };
  return op;
}

}  // namespace quern::kir
