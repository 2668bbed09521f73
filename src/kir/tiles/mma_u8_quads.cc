// GEMM micro-tile: a few rows of u8 against one panel of at most 32 rows of bytes, in quads along k.
//
//   mma_u8_quads c += x, w      c : i32[m, n]   x : u8[m, k]   w : u32[n, p] @kn32
//
// As mma_i8_quads; `add` is 128 where bytes of weights that have no sign were given one.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_u8_quads() {
  static const TileOp op = {
      .name = "mma_u8_quads",
      .doc = "c += x (w + add)^T for one panel of 32 rows of quads of bytes",
      .tiles = {{"c", DType::kI32, {"m", "n"}}},
      .operands = {{"x", DType::kU8, {"m", "k"}}, {"w", DType::kU32, {"n", "p"}, Layout::kKn32}},
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
      .symbol = "qk_mma_u8_quads",
      .work = IntegerProduct,
      .starts = true,
  };
  return op;
}

}  // namespace quern::kir
