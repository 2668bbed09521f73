// GEMV rows: up to 64 rows of a weight against one or a few rows of activations.
//
//   dot_q4_K y += w, x ahead 8192      y : f32[m, n]   w : q4_K[n, k] @blocks   x : q8_K[m, k] @planar
//
// w may be prefetched `ahead` bytes past its end, never loaded there.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_dot_q4_K() {
  static const TileOp op = {
      .name = "dot_q4_K",
      .doc = "y += x w^T for q4_K rows",
      .tiles = {{"y", DType::kF32, {"m", "n"}}},
      .operands = {{"w", DType::kQ4_K, {"n", "k"}, Layout::kBlocks}, {"x", DType::kQ8_K, {"m", "k"}, Layout::kPlanar}},
      .sizes = {"m", "n", "k"},
      .attributes = {{"ahead", DType::kI64, 0}},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        y[r, j] = y[r, j] + (sum for i in 0..k { decode(x, r, i) * decode(w, j, i) })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_dot_q4_K",
  };
  return op;
}

}  // namespace quern::kir
