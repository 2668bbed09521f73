#include "onnx/block_codes.h"

#include <algorithm>

#include "base/block_format.h"
#include "base/byte_writer.h"

namespace quern::onnx {
namespace {

// Code i of the row of codes at `bytes`.
uint8_t CodeAt(const uint8_t* bytes, int64_t i, int64_t bits) {
  return bits == 8 ? bytes[i] : bytes[i / 2] >> (i % 2 * 4) & 15;
}

std::vector<double> ZerosOf(Call& c, const CodeForm& form, const BlockCodes& w) {
  const int64_t row_bytes = CeilDiv(w.blocks() * w.bits, 8), count = w.n * w.blocks();
  std::vector<double> zeros(count, form.zero);
  if (!c.Has(form.zeros)) return zeros;
  const Data* const given = c.item(form.zeros).data.get();
  if (form.row_bytes > 0 && given != nullptr && given->dtype == DType::kU8 &&
      static_cast<int64_t>(given->bytes.size()) == w.n * row_bytes) {
    for (int64_t i = 0; i < count; ++i)
      zeros[i] = CodeAt(given->bytes.data() + i / w.blocks() * row_bytes, i % w.blocks(), w.bits);
    return zeros;
  }
  std::vector<double> numbers = c.NumbersOf(form.zeros);
  if (c.ok() && numbers.size() != zeros.size())
    c.Fail(absl::InvalidArgumentError("its zero points are not as many as its scales"));
  return numbers;
}

}  // namespace

std::vector<double> Turned(const std::vector<double>& numbers, int64_t columns) {
  std::vector<double> turned(numbers.size());
  const size_t rows = numbers.size() / columns;
  for (size_t i = 0; i < numbers.size(); ++i) turned[i % columns * rows + i / columns] = numbers[i];
  return turned;
}

bool BlockCodes::AreZerosInTheMiddle() const {
  return std::ranges::all_of(zeros, [&](double zero) { return zero == static_cast<double>(middle()); });
}

void ReadBlockCodes(Call& c, const CodeForm& form, BlockCodes& w) {
  const Data* const given = c.item(form.codes).data.get();
  if (given == nullptr || (given->dtype != DType::kU8 && given->dtype != DType::kI8))
    return c.Fail("weights that are no data of the file have no op");
  w.scales = c.NumbersOf(form.scales);
  if (!c.ok()) return;
  const std::span<const uint8_t> bytes = given->bytes;
  const int64_t bits = form.row_bytes == 0 ? 8 : w.bits;  // that a code takes
  const int64_t row_bytes = form.row_bytes == 0 ? w.k : form.row_bytes;
  if (static_cast<int64_t>(bytes.size()) != w.n * row_bytes || row_bytes < CeilDiv(w.k * bits, 8) ||
      static_cast<int64_t>(w.scales.size()) != w.n * w.blocks())
    return c.Fail(absl::InvalidArgumentError("its weights or scales are not as many as N, K and the block say"));
  w.zeros = ZerosOf(c, form, w);
  if (!c.ok()) return;
  w.codes.resize(w.n * w.k);
  for (int64_t row = 0; row < w.n; ++row) {
    for (int64_t i = 0; i < w.k; ++i)
      w.codes[row * w.k + i] = form.turned ? bytes[i * w.n + row] : CodeAt(bytes.data() + row * row_bytes, i, bits);
  }
  if (form.turned) {
    w.scales = Turned(w.scales, w.n);
    w.zeros = Turned(w.zeros, w.n);
  }
  if (given->dtype == DType::kI8) {
    for (uint8_t& code : w.codes) code = static_cast<uint8_t>(code + w.middle());
    for (double& zero : w.zeros) zero += static_cast<double>(w.middle());
  }
}

Value BlocksOf(Call& c, const std::string& name, const BlockCodes& w, DType format,
               absl::FunctionRef<void(int64_t block, std::vector<uint8_t>& data)> head) {
  std::vector<uint8_t> data;
  data.reserve(RowBytes(format, w.k) * w.n);
  const int sign = FormatOf(format).zero == 128 ? 128 : 0;  // of bytes that count from -128 on
  for (int64_t at = 0; at < w.n * w.k; at += 32) {
    head(at / w.k * w.blocks() + at % w.k / w.block, data);
    const uint8_t* const codes = w.codes.data() + at;
    if (w.bits == 8) {
      for (int i = 0; i < 32; ++i) data.push_back(static_cast<uint8_t>(codes[i] ^ sign));
    } else {
      for (int i = 0; i < 16; ++i) data.push_back(static_cast<uint8_t>(codes[i] | codes[i + 16] << 4));
    }
  }
  return c.Param(absl::StrCat(name, ".", FormatOf(format).name), {format, {Extent(w.n), Extent(w.k)}}, std::move(data));
}

Value BlocksOfFloats(Call& c, const std::string& name, const BlockCodes& w) {
  const bool middle = w.AreZerosInTheMiddle();
  const DType format = w.bits == 8 ? middle ? DType::kN8_0 : DType::kN8_1 : middle ? DType::kN4_0 : DType::kN4_1;
  return BlocksOf(c, name, w, format, [&](int64_t block, std::vector<uint8_t>& data) {
    PutBytes(data, static_cast<float>(w.scales[block]));
    if (!middle) PutBytes(data, static_cast<float>(-w.zeros[block] * w.scales[block]));
  });
}

}  // namespace quern::onnx
