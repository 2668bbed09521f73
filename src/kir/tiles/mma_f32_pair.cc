// The GEMM micro-tile of mma_f32 for two panels at once: of a row that is read once twice as many sums are made, and
// loads are fewer.
//
//   mma_f32_pair c, d += x, w, v  ahead 0  next 0  after 0    c, d : f32[m, n]   x : f32[m, k]   w, v : f32[n, k] @kn32
//
// Sums are those of two calls of mma_f32, to the bit. Panels that may not be in a near cache are prefetched as there.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_f32_pair() {
  static const TileOp op = {
      .name = "mma_f32_pair",
      .doc = "c += x w^T and d += x v^T for two f32 panels of 32 rows",
      .tiles = {{"c", DType::kF32, {"m", "n"}}, {"d", DType::kF32, {"m", "n"}}},
      .operands = {{"x", DType::kF32, {"m", "k"}},
                   {"w", DType::kF32, {"n", "k"}, Layout::kKn32},
                   {"v", DType::kF32, {"n", "k"}, Layout::kKn32}},
      .sizes = {"m", "n", "k"},
      .attributes = {{"ahead", DType::kI64, 0}, {"next", DType::kI64, 0}, {"after", DType::kI64, 0}},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..k { x[r, i] * w[j, i] })
        d[r, j] = d[r, j] + (sum for i in 0..k { x[r, i] * v[j, i] })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_mma_f32_pair",
      .work = [](std::span<const int64_t> sizes) { return TileWork{.flops = 2 * FloatProduct(sizes).flops}; },
      .starts = true,
  };
  return op;
}

}  // namespace quern::kir
