// What the products of block-format weights declare alike: an op's file names the formats and the CPU binding, of which
// the op's name is what follows "qk_"; this header has the rest.
//
//   static const TileOp op = DotBlocks("qk_dot_q4_K", DType::kQ4_K, DType::kQ8_K);
#pragma once

#include "kir/tile_op.h"

namespace quern::kir {

// GEMV rows: up to 64 rows of a weight against one or a few rows of activations, quantised or (kF32) exact.
//
//   NAME y += w, x ahead 8192      y : f32[m, n]   w : weight[n, k] @blocks   x : activation[m, k]
//
// w may be prefetched `ahead` bytes past its end, never loaded there.
inline TileOp DotBlocks(const char* symbol, DType weight, DType activation) {
  const bool exact = activation == DType::kF32;
  return {
      .name = symbol + 3,
      .doc = exact ? "y += x w^T for rows of blocks and exact f32 activations" : "y += x w^T for rows of blocks",
      .tiles = {{"y", DType::kF32, {"m", "n"}}},
      .operands = {{"w", weight, {"n", "k"}, Layout::kBlocks},
                   {"x", activation, {"m", "k"}, exact ? Layout::kRow : Layout::kPlanar}},
      .sizes = {"m", "n", "k"},
      .attributes = {{"ahead", DType::kI64, 0}},
      .meaning = exact ? R"(
    for r in 0..m {
      for j in 0..n {
        y[r, j] = y[r, j] + (sum for i in 0..k { x[r, i] * decode(w, j, i) })
      }
    }
  )"
                       : R"(
    for r in 0..m {
      for j in 0..n {
        y[r, j] = y[r, j] + (sum for i in 0..k { decode(x, r, i) * decode(w, j, i) })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = symbol,
      .work = exact ? FloatProduct : IntegerProduct,
  };
}

// GEMM micro-tile: a few rows of quantised activations against one panel of at most 16 rows of a weight.
//
//   NAME c += x, w      c : f32[m, n]   x : activation[m, k] @planar   w : weight[n, k] @panel16
inline TileOp MmaBlocks(const char* symbol, DType weight, DType activation) {
  return {
      .name = symbol + 3,
      .doc = "c += x w^T for one panel of 16 rows",
      .tiles = {{"c", DType::kF32, {"m", "n"}}},
      .operands = {{"x", activation, {"m", "k"}, Layout::kPlanar}, {"w", weight, {"n", "k"}, Layout::kPanel16}},
      .sizes = {"m", "n", "k"},
      .attributes = {},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..k { decode(x, r, i) * decode(w, j, i) })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = symbol,
      .work = IntegerProduct,
  };
}

}  // namespace quern::kir
