// GEMM micro-tile: a few rows of u8 against one panel of at most 32 rows of bytes, in quads along k.
//
//   mma_u8_quads c += x, w  add 0      c : i32[m, n]   x : u8[m, k]   w : u32[n, p] @kn32
//
// As mma_i8_quads, but the bytes of w have a sign; `add` is 128 where those of the weights have none.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_mma_u8_quads() {
  static const TileOp op = {
      .name = "mma_u8_quads",
      .doc = "c += x (w + add)^T for one panel of 32 rows of quads of bytes with a sign",
      .tiles = {{"c", DType::kI32, {"m", "n"}}},
      .operands = {{"x", DType::kU8, {"m", "k"}}, {"w", DType::kU32, {"n", "p"}, Layout::kKn32}},
      .sizes = {"m", "n", "k", "p"},
      .attributes = {{"add", DType::kI64, 0}},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..min(k, 4 * p) {
          cast<i32>(x[r, i]) * ((bits<i32>(w[j, i / 4] << cast<u32>(24 - 8 * (i % 4))) >> 24) + cast<i32>(add))
        })
      }
    }
  )",
      .rtol = 0,
      .symbol = "qk_mma_u8_quads",
      .work = IntegerProduct,
  };
  return op;
}

}  // namespace quern::kir
