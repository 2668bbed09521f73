// GEMM micro-tile: a few rows of i8 against one panel of at most 32 rows of bytes, in quads along k.
//
//   mma_i8_quads c += x, w signed 1      c : i32[m, n]   x : i8[m, k]   w : u32[n, p] @kn32
//
// A word of w has four neighbours along k, the first in its lowest byte; whether they have a sign `signed` says, and
// what each of them stands for is `add` more: -128 where the sign of weights was turned away for a target that
// multiplies bytes with one by bytes without. k past the last word is not multiplied.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_i8_quads() {
  static const TileOp op = {
      .name = "mma_i8_quads",
      .doc = "c += x (w + add)^T for one panel of 32 rows of quads of bytes",
      .tiles = {{"c", DType::kI32, {"m", "n"}}},
      .operands = {{"x", DType::kI8, {"m", "k"}}, {"w", DType::kU32, {"n", "p"}, Layout::kKn32}},
      .sizes = {"m", "n", "k", "p"},
      .attributes = {{"add", DType::kI64, 0}, {"signed", DType::kI64, 0}},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..min(k, 4 * p) {
          cast<i32>(x[r, i]) * (cast<i32>(((w[j, i / 4] >> cast<u32>(8 * (i % 4))) & 255) ^ cast<u32>(128 * signed)) +
                                cast<i32>(add - 128 * signed))
        })
      }
    }
  )",
      .rtol = 0,
      .symbol = "qk_mma_i8_quads",
      .work = IntegerProduct,
      .starts = true,
  };
  return op;
}

}  // namespace quern::kir
