// The GEMM micro-tile of mma_f32 for rows that run on into each other, as neighbouring windows of an image do: what is
// multiplied for row r are the k elements from the beginning of row r of x on, e of them in each row.
//
//   mma_f32_runs c += x, w  ahead 0  next 0  after 0    c : f32[m, n]   x : f32[m, e]   w : f32[n, k] @kn32
//
// The last rows of x, which have no k elements from their beginning on, have no sums; those of c are left alone.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_f32_runs() {
  static const TileOp op = {
      .name = "mma_f32_runs",
      .doc = "c += x w^T for one f32 panel of 32 rows, of rows that run on into the next ones",
      .tiles = {{"c", DType::kF32, {"m", "n"}}},
      .operands = {{"x", DType::kF32, {"m", "e"}}, {"w", DType::kF32, {"n", "k"}, Layout::kKn32}},
      .sizes = {"m", "n", "e", "k"},
      .attributes = {{"ahead", DType::kI64, 0}, {"next", DType::kI64, 0}, {"after", DType::kI64, 0}},
      .meaning = R"(
    for r in 0..m - (k + e - 1) / e + 1 {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..k { x[r + i / e, i % e] * w[j, i] })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_mma_f32_runs",
      .work = RunProduct,
  };
  return op;
}

}  // namespace quern::kir
