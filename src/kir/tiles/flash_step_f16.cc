// One step of attention by online softmax: r query rows against t keys, f16 keys and values.
//
//   flash_step_f16 o, m, l += q, k, v, lo, hi, bias scale 0.125, softcap 30.0
//
// o is the output before its division by l, m the running maximum of the scores (start at -inf), l the running sum. Row
// i attends the keys lo[i] <= key < hi[i] of this tile; a row without any leaves o, m, l as they are. The score is
// scale q.k, then softcap tanh(score / softcap) unless softcap is 0, then plus bias. A key whose bias is -inf takes no
// part, like one outside of the range, whatever it holds; a NaN in any other makes the row NaN. `many` (1) says that
// the rows are some of many: the bits of each are its own, however many of them are here.
#include "kir/tile_op.h"

namespace quern::kir {

const TileOp& TileOp_flash_step_f16() {
  static const TileOp op = {
      .name = "flash_step_f16",
      .doc = "online-softmax attention step over f16 keys and values",
      .tiles = {{"o", DType::kF32, {"r", "d"}}, {"m", DType::kF32, {"r"}}, {"l", DType::kF32, {"r"}}},
      .operands = {{"q", DType::kF32, {"r", "d"}},
                   {"k", DType::kF16, {"t", "d"}},
                   {"v", DType::kF16, {"t", "d"}},
                   {"lo", DType::kI32, {"r"}},
                   {"hi", DType::kI32, {"r"}},
                   {"bias", DType::kF32, {"r", "t"}, Layout::kRow, true}},
      .sizes = {"r", "d", "t"},
      .attributes = {{"scale", DType::kF32, 1}, {"softcap", DType::kF32, 0}, {"many", DType::kI64, 0}},
      .meaning = R"(
    for i in 0..r {
      for j in 0..t {
        if (cast<i64>(lo[i]) <= j) & (j < cast<i64>(hi[i])) & (bias[i, j] != -inf) {
          let scaled = scale * (sum for c in 0..d { q[i, c] * cast<f32>(k[j, c]) })
          let capped = select(softcap == 0, scaled, softcap * tanh(scaled / softcap))
          let score = capped + bias[i, j]
          let top = max(m[i], score)
          let shrink = select(top == -inf, 1, exp(m[i] - top))
          let weight = select(top == -inf, 0, exp(score - top))
          l[i] = l[i] * shrink + weight
          for c in 0..d {
            o[i, c] = o[i, c] * shrink + weight * cast<f32>(v[j, c])
          }
          m[i] = top
        }
      }
    }
  )",
      .rtol = 1e-5,
      .symbol = "qk_flash_step_f16",
      .workspace_bytes = [](std::span<const int64_t> sizes) -> int64_t {
        return 256 * sizes[1] + 16384;  // 64 keys transposed, [d][64] f32, and scores [64][64]
      },
      .work = [](std::span<const int64_t> sizes) -> TileWork {
        // A key and a query: two products of d, and scale, maximum, difference, exponential and sum of its score.
        const double pairs = static_cast<double>(sizes[0]) * static_cast<double>(sizes[2]);
        return {.flops = pairs * (4.0 * static_cast<double>(sizes[1]) + 5)};
      },
  };
  return op;
}

}  // namespace quern::kir
