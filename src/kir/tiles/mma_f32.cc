// GEMM micro-tile: a few rows of activations against one panel of at most 32 rows of a weight.
//
//   mma_f32 c += x, w  ahead 0  next 0  after 0     c : f32[m, n]   x : f32[m, k]   w : f32[n, k] @kn32
//
// A panel that may not be in a near cache is prefetched `ahead` bytes before its first use, past its end too, never
// loaded there; of the `next` bytes that lie `after` the first ones behind it every block of rows asks for some.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_f32() {
  static const TileOp op = {
      .name = "mma_f32",
      .doc = "c += x w^T for one f32 panel of 32 rows",
      .tiles = {{"c", DType::kF32, {"m", "n"}}},
      .operands = {{"x", DType::kF32, {"m", "k"}}, {"w", DType::kF32, {"n", "k"}, Layout::kKn32}},
      .sizes = {"m", "n", "k"},
      .attributes = {{"ahead", DType::kI64, 0}, {"next", DType::kI64, 0}, {"after", DType::kI64, 0}},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..k { x[r, i] * w[j, i] })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_mma_f32",
      .work = FloatProduct,
      .starts = true,
  };
  return op;
}

}  // namespace quern::kir
