// GEMM micro-tile of numbers that are sums of two bf16: a few rows against one panel of at most 32 rows of a weight.
//
//   mma_bf16_parts c += x, y, w, v      c : f32[m, n]   x, y : bf16[m, k]   w, v : u32[n, p] @kn32, in pairs along k
//
// Rows x + y by a weight w + v, but for the product of y and v; a weight that is bf16 has no v. As three calls of
// mma_bf16_pairs, but that sums stay where they are.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_bf16_parts() {
  static const TileOp op = {
      .name = "mma_bf16_parts",
      .doc = "c += (x + y) w^T + x v^T for one panel of 32 rows of bf16 pairs, and another or none",
      .tiles = {{"c", DType::kF32, {"m", "n"}}},
      .operands = {{"x", DType::kBF16, {"m", "k"}},
                   {"y", DType::kBF16, {"m", "k"}},
                   {"w", DType::kU32, {"n", "p"}, Layout::kKn32},
                   {"v", DType::kU32, {"n", "p"}, Layout::kKn32, true}},
      .sizes = {"m", "n", "k", "p"},
      .attributes = {},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..min(k, 2 * p) {
          let first = bits<f32>(select(i % 2 == 0, w[j, i / 2] << 16, (w[j, i / 2] >> 16) << 16))
          let second = bits<f32>(select(i % 2 == 0, v[j, i / 2] << 16, (v[j, i / 2] >> 16) << 16))
          cast<f32>(y[r, i]) * first + cast<f32>(x[r, i]) * first + cast<f32>(x[r, i]) * second
        })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_mma_bf16_parts",
      .work = PairProduct,
  };
  return op;
}

}  // namespace quern::kir
