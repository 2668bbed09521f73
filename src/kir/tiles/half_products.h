// Products of 16-bit floats that a warp computes together: operands are dense rows, sums are f32.
#pragma once

#include "kir/tile_op.h"

namespace quern::kir {

inline TileOp MmaHalves(const char* name, DType dtype) {
  return {
      .name = name,
      .doc = "c += x w^T of 16-bit floats in shared memory, by the matrix units of a warp or of a group of warps",
      .tiles = {{"c", DType::kF32, {"m", "n"}}},
      .operands = {{"x", dtype, {"m", "k"}}, {"w", dtype, {"n", "k"}}},
      .sizes = {"m", "n", "k"},
      .attributes = {},
      .meaning = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..k { cast<f32>(x[r, i]) * cast<f32>(w[j, i]) })
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = nullptr,
      .work = FloatProduct,
  };
}

}  // namespace quern::kir
