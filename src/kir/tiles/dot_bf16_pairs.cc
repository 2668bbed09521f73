// GEMV rows: up to 64 rows of a weight against one or a few rows of activations.
//
//   dot_bf16_pairs y += w, x ahead 8192      y : f32[m, n]   w : bf16[n, k]   x : bf16[m, k]
//
// w may be prefetched `ahead` bytes past its end, never loaded there.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_dot_bf16_pairs() {
  static const TileOp op = {
      .name = "dot_bf16_pairs",
      .doc = "y += x w^T for bf16 rows, x in bf16 too",
      .tiles = {{"y", DType::kF32, {"m", "n"}}},
      .operands = {{"w", DType::kBF16, {"n", "k"}}, {"x", DType::kBF16, {"m", "k"}}},
      .sizes = {"m", "n", "k"},
      .attributes = {{"ahead", DType::kI64, 0}},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        y[r, j] = y[r, j] + (sum for i in 0..k { cast<f32>(x[r, i]) * cast<f32>(w[j, i]) })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_dot_bf16_pairs",
      .work = PairProduct,
  };
  return op;
}

}  // namespace quern::kir
