// MatMulNBits of com.microsoft: x by the transpose of a weight [N, K] of 4 or 8 bits a number, in blocks along K with a
// scale and a zero point each, w = (code - zero) scale. It becomes a MatMul of blocks: where its accuracy_level allows
// int8 activations of those that are multiplied with bytes, else of those with floats beside their codes. What no block
// holds becomes a DequantMatMul, whose weight is unpacked.

#include <algorithm>
#include <cmath>

#include "base/byte_writer.h"
#include "base/half.h"
#include "onnx/block_codes.h"
#include "onnx/products.h"

namespace quern::onnx {
namespace {

// Whether a half says the number but for the last of its 11 bits.
bool IsNearHalf(double number) {
  const double size = std::fabs(number);
  return size == 0 || (size >= 0x1p-14 && size <= 65504);
}

// A product of int8 activations by blocks of 32, q4_0 or q8_0, whose zero point is the middle; nothing where those
// cannot hold the weight. Their scales are halves: a scale that is none is rounded, by 2^-12 of it at most, where
// rounding activations to 8 bits is 2^-8 of the largest. Other zero points are made up for in f32:
//   sum x (code - zero) scale = sum x (code - middle) scale - sum over blocks of (zero - middle) scale * sum of x
std::optional<Value> ByBytes(Call& c, Value x, const BlockCodes& w) {
  if (!std::ranges::all_of(w.scales, IsNearHalf)) return std::nullopt;
  const Value blocks =
      BlocksOf(c, c.item(1).name, w, w.bits == 8 ? DType::kQ8_0 : DType::kQ4_0,
               [&](int64_t block, auto& data) { PutBytes(data, FloatToHalf(static_cast<float>(w.scales[block]))); });
  const Value y = c.Add("MatMul", {x, blocks}, {{"transpose_b", true}});
  if (w.AreZerosInTheMiddle()) return y;
  const int64_t rows = w.k % w.block == 0 ? w.block : 32;  // of x that are added up
  std::vector<double> offsets(w.k / rows * w.n);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t block = i % w.n * w.blocks() + i / w.n * rows / w.block;
    offsets[i] = (w.zeros[block] - w.middle()) * w.scales[block];
  }
  Extents dims = c.type(x).dims;
  dims.back() = Extent(w.k / rows);
  dims.push_back(Extent(rows));
  const Value sums = c.Reduce("sum", c.Reshape(c.Wide(x), dims), {c.rank(x)}, false);
  const Value offset = c.Reals(offsets, DType::kF32, {Extent(w.k / rows), Extent(w.n)});
  return c.Cast(c.Add("Sub", {c.Wide(y), c.Add("MatMul", {sums, offset})}), c.dtype(x));
}

// A product of x as it is.
Value ByFloats(Call& c, Value x, const BlockCodes& w) {
  const Value blocks = BlocksOfFloats(c, c.item(1).name, w);
  return c.Cast(c.Add("MatMul", {c.Wide(x), blocks}, {{"transpose_b", true}}), c.dtype(x));
}

// A product by the weight unpacked.
Value ByNumbers(Call& c, Value x, BlockCodes& w) {
  // Ours are [K, N], of 4 bits two columns a byte; of 8 bits from -128 on.
  std::vector<uint8_t> bytes(CeilDiv(w.k * w.n * w.bits, 8));
  for (int64_t p = 0; p < w.k; ++p) {
    for (int64_t j = 0; j < w.n; ++j) {
      const uint8_t code = w.codes[j * w.k + p];
      const int64_t at = p * w.n + j;
      if (w.bits == 8)
        bytes[at] = code ^ 128;
      else
        bytes[at / 2] |= code << (at % 2 * 4);
    }
  }
  if (w.bits == 8) {
    for (double& zero : w.zeros) zero -= 128;
  }
  const Extents beside = {Extent(w.blocks()), Extent(w.n)};
  ir::TensorType type = {DType::kU8, {Extent(static_cast<int64_t>(bytes.size()))}};
  if (w.bits == 8) type = {DType::kI8, {Extent(w.k), Extent(w.n)}};
  const std::string scheme = w.bits == 8 ? "int8a" : "int4";
  const Value weight = c.Param(absl::StrCat(c.item(1).name, ".", scheme), type, std::move(bytes));
  return c.Cast(c.Add("DequantMatMul",
                      {c.Wide(x), weight, c.Reals(Turned(w.scales, w.blocks()), DType::kF32, beside),
                       c.Reals(Turned(w.zeros, w.blocks()), DType::kF32, beside)},
                      {{"scheme", scheme}, {"block", w.block}}),
                c.dtype(x));
}

}  // namespace

void MatMulNBits(Call& c) {
  const Value x = c.x(0);
  BlockCodes w = {c.Int("K", 0), c.Int("N", 0), c.Int("block_size", 32), c.Int("bits", 4)};
  if (w.bits != 4 && w.bits != 8) return c.Fail("weights of other than 4 or 8 bits have no op");
  if (c.Has(4)) return c.Fail("groups by index (g_idx) have no op");
  if (w.k < 1 || w.n < 1 || w.block < 16 || w.k > 1 << 24 || w.n > 1 << 24 || w.block > 1 << 24)
    return c.Fail(absl::InvalidArgumentError("its sizes are none"));
  const int64_t row_bytes = CeilDiv(w.blocks() * w.block * w.bits, 8);
  const auto middle = static_cast<double>(w.middle());
  ReadBlockCodes(c, {.codes = 1, .scales = 2, .zeros = 3, .zero = middle, .row_bytes = row_bytes}, w);
  if (!c.ok()) return;
  std::optional<Value> y;
  if (!w.FitBlocks()) {
    y = ByNumbers(c, x, w);
  } else {
    if (c.Int("accuracy_level", 0) == 4) y = ByBytes(c, x, w);
    if (!y) y = ByFloats(c, x, w);
  }
  if (c.Has(5)) y = c.Add("Add", {*y, c.x(5)});
  c.Return(*y);
}

}  // namespace quern::onnx
