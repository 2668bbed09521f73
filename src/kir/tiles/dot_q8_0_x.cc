// GEMV rows: up to 64 rows of a weight against one or a few rows of activations, which stay f32.
//
//   dot_q8_0_x y += w, x ahead 8192      y : f32[m, n]   w : q8_0[n, k] @blocks   x : f32[m, k]
//
// w may be prefetched `ahead` bytes past its end, never loaded there.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_dot_q8_0_x() {
  static const TileOp op = {
      .name = "dot_q8_0_x",
      .doc = "y += x w^T for q8_0 rows and exact f32 activations",
      .tiles = {{"y", DType::kF32, {"m", "n"}}},
      .operands = {{"w", DType::kQ8_0, {"n", "k"}, Layout::kBlocks}, {"x", DType::kF32, {"m", "k"}}},
      .sizes = {"m", "n", "k"},
      .attributes = {{"ahead", DType::kI64, 0}},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        y[r, j] = y[r, j] + (sum for i in 0..k { x[r, i] * decode(w, j, i) })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_dot_q8_0_x",
  };
  return op;
}

}  // namespace quern::kir
