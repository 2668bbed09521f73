// GEMM micro-tile: a few rows of activations against one panel of at most 16 rows of a weight.
//
//   mma_q4_0 c += x, w      c : f32[m, n]   x : q8_0[m, k] @planar   w : q4_0[n, k] @panel16
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_q4_0() {
  static const TileOp op = {
      .name = "mma_q4_0",
      .doc = "c += x w^T for one q4_0 panel of 16 rows",
      .tiles = {{"c", DType::kF32, {"m", "n"}}},
      .operands = {{"x", DType::kQ8_0, {"m", "k"}, Layout::kPlanar}, {"w", DType::kQ4_0, {"n", "k"}, Layout::kPanel16}},
      .sizes = {"m", "n", "k"},
      .attributes = {},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..k { decode(x, r, i) * decode(w, j, i) })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_mma_q4_0",
  };
  return op;
}

}  // namespace quern::kir
