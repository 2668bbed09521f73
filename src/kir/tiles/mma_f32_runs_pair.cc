// The GEMM micro-tile of mma_f32_runs for two panels at once, as mma_f32_pair is that of mma_f32.
//
//   mma_f32_runs_pair c, d += x, w, v  ahead 0  next 0  after 0    c, d : f32[m, n]   x : f32[m, e]
//                                                                  w, v : f32[n, k] @kn32
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_f32_runs_pair() {
  static const TileOp op = {
      .name = "mma_f32_runs_pair",
      .doc = "c += x w^T and d += x v^T for two f32 panels of 32 rows, of rows that run on into the next ones",
      .tiles = {{"c", DType::kF32, {"m", "n"}}, {"d", DType::kF32, {"m", "n"}}},
      .operands = {{"x", DType::kF32, {"m", "e"}},
                   {"w", DType::kF32, {"n", "k"}, Layout::kKn32},
                   {"v", DType::kF32, {"n", "k"}, Layout::kKn32}},
      .sizes = {"m", "n", "e", "k"},
      .attributes = {{"ahead", DType::kI64, 0}, {"next", DType::kI64, 0}, {"after", DType::kI64, 0}},
      .meaning = R"(
    for r in 0..m - (k + e - 1) / e + 1 {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..k { x[r + i / e, i % e] * w[j, i] })
        d[r, j] = d[r, j] + (sum for i in 0..k { x[r + i / e, i % e] * v[j, i] })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_mma_f32_runs_pair",
      .work = [](std::span<const int64_t> sizes) { return TileWork{.flops = 2 * RunProduct(sizes).flops}; },
  };
  return op;
}

}  // namespace quern::kir
