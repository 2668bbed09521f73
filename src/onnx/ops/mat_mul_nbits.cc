// MatMulNBits of com.microsoft: x by the transpose of a weight [N, K] of 4 or 8 bits a number, in blocks along K with a
// scale and a zero point each, w = (code - zero) scale. It becomes a MatMul of blocks where its accuracy_level allows
// int8 activations, else a DequantMatMul.

#include <algorithm>
#include <cmath>

#include "base/divide.h"
#include "base/half.h"
#include "onnx/products.h"

namespace quern::onnx {
namespace {

// Weights of 4 or 8 bits as ONNX has them: [N, blocks, bytes], of 4 bits the low half of a byte first along K.
struct Codes {
  int64_t k, n, block, bits;
  std::vector<uint8_t> codes = {};  // [N, K]
  std::vector<double> scales = {};  // [N, blocks]
  std::vector<double> zeros = {};   // likewise

  int64_t blocks() const { return CeilDiv(k, block); }
  int64_t bytes() const { return CeilDiv(blocks() * block * bits, 8); }  // of a row
  int64_t middle() const { return int64_t{1} << (bits - 1); }            // the zero point where none is given
};

// Code i of the row of codes at `bytes`.
uint8_t CodeAt(const uint8_t* bytes, int64_t i, int64_t bits) {
  return bits == 8 ? bytes[i] : bytes[i / 2] >> (i % 2 * 4) & 15;
}

// The zero points, packed as the codes are, a row of blocks padded to whole bytes; or given as floats.
std::vector<double> ZerosOf(Call& c, const Codes& w) {
  const int64_t row_bytes = CeilDiv(w.blocks() * w.bits, 8), count = w.n * w.blocks();
  std::vector<double> zeros(count, static_cast<double>(w.middle()));
  if (!c.Has(3)) return zeros;
  const Data* const given = c.item(3).data.get();
  if (given != nullptr && given->dtype == DType::kU8 && static_cast<int64_t>(given->bytes.size()) == w.n * row_bytes) {
    for (int64_t i = 0; i < count; ++i)
      zeros[i] = CodeAt(given->bytes.data() + i / w.blocks() * row_bytes, i % w.blocks(), w.bits);
    return zeros;
  }
  std::vector<double> numbers = c.NumbersOf(3);
  if (c.ok() && numbers.size() != zeros.size())
    c.Fail(absl::InvalidArgumentError("its zero points are not as many as its scales"));
  return numbers;
}

// Reads the rest of what `w` has sizes of.
void ReadCodes(Call& c, Codes& w) {
  const Item& packed = c.item(1);
  if (packed.data == nullptr || packed.data->dtype != DType::kU8)
    return c.Fail("weights that are no data of the file have no op");
  w.scales = c.NumbersOf(2);
  const std::span<const uint8_t> bytes = packed.data->bytes;
  if (!c.ok()) return;
  if (static_cast<int64_t>(bytes.size()) != w.n * w.bytes() ||
      static_cast<int64_t>(w.scales.size()) != w.n * w.blocks())
    return c.Fail(absl::InvalidArgumentError("its weights or scales are not as many as N, K and the block say"));
  w.codes.resize(w.n * w.k);
  for (int64_t row = 0; row < w.n; ++row) {
    for (int64_t i = 0; i < w.k; ++i) w.codes[row * w.k + i] = CodeAt(bytes.data() + row * w.bytes(), i, w.bits);
  }
  w.zeros = ZerosOf(c, w);
}

// Whether a half says the number but for the last of its 11 bits.
bool IsNearHalf(double number) {
  const double size = std::fabs(number);
  return size == 0 || (size >= 0x1p-14 && size <= 65504);
}

// A product of int8 activations by blocks of 32, q4_0 or q8_0, whose zero point is the middle; nothing where those are
// not asked for or cannot hold the weight. Their scales are halves: a scale that is none is rounded, by 2^-12 of it at
// most, where rounding activations to 8 bits is 2^-8 of the largest. Other zero points are made up for in f32:
//   sum x (code - zero) scale = sum x (code - middle) scale - sum over blocks of (zero - middle) scale * sum of x
std::optional<Value> ByBlocks(Call& c, Value x, const Codes& w) {
  if (c.Int("accuracy_level", 0) != 4 || w.block % 32 != 0 || w.k % 32 != 0) return std::nullopt;
  if (!std::ranges::all_of(w.scales, IsNearHalf)) return std::nullopt;
  const DType format = w.bits == 8 ? DType::kQ8_0 : DType::kQ4_0;
  std::vector<uint8_t> data;
  for (int64_t at = 0; at < w.n * w.k; at += 32) {
    const uint16_t scale = FloatToHalf(static_cast<float>(w.scales[at / w.k * w.blocks() + at % w.k / w.block]));
    data.push_back(static_cast<uint8_t>(scale & 255));
    data.push_back(static_cast<uint8_t>(scale >> 8));
    const uint8_t* const codes = w.codes.data() + at;
    if (w.bits == 8) {
      for (int i = 0; i < 32; ++i) data.push_back(codes[i] ^ 128);  // less 128
    } else {
      for (int i = 0; i < 16; ++i) data.push_back(static_cast<uint8_t>(codes[i] | codes[i + 16] << 4));
    }
  }
  const Value y = c.Add("MatMul",
                        {x, c.Param(absl::StrCat(c.item(1).name, ".", std::string(Name(format))),
                                    {format, {Extent(w.n), Extent(w.k)}}, std::move(data))},
                        {{"transpose_b", true}});
  if (std::ranges::all_of(w.zeros, [&](double zero) { return zero == w.middle(); })) return y;
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

// [N, blocks] as [blocks, N].
std::vector<double> BlocksFirst(const Codes& w, const std::vector<double>& numbers) {
  std::vector<double> turned(numbers.size());
  for (int64_t g = 0; g < w.blocks(); ++g) {
    for (int64_t j = 0; j < w.n; ++j) turned[g * w.n + j] = numbers[j * w.blocks() + g];
  }
  return turned;
}

}  // namespace

void MatMulNBits(Call& c) {
  const Value x = c.x(0);
  Codes w = {c.Int("K", 0), c.Int("N", 0), c.Int("block_size", 32), c.Int("bits", 4)};
  if (w.bits != 4 && w.bits != 8) return c.Fail("weights of other than 4 or 8 bits have no op");
  if (c.Has(4)) return c.Fail("groups by index (g_idx) have no op");
  if (w.k < 1 || w.n < 1 || w.block < 16 || w.k > 1 << 24 || w.n > 1 << 24 || w.block > 1 << 24)
    return c.Fail(absl::InvalidArgumentError("its sizes are none"));
  ReadCodes(c, w);
  if (!c.ok()) return;
  std::optional<Value> y = ByBlocks(c, x, w);
  if (!y) {
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
    y = c.Cast(c.Add("DequantMatMul",
                     {c.Wide(x), weight, c.Reals(BlocksFirst(w, w.scales), DType::kF32, beside),
                      c.Reals(BlocksFirst(w, w.zeros), DType::kF32, beside)},
                     {{"scheme", scheme}, {"block", w.block}}),
               c.dtype(x));
  }
  if (c.Has(5)) y = c.Add("Add", {*y, c.x(5)});
  c.Return(*y);
}

}  // namespace quern::onnx
