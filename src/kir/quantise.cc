#include "kir/quantise.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/block_format.h"
#include "base/check.h"
#include "base/half.h"
#include "kir/decode.h"
#include "kir/layout.h"

namespace quern::kir {
namespace {

// Half to even, as ggml's nearest_int: adding 1.5 * 2^23 leaves the integer in the low mantissa bits. Defined for every
// input (NaN gives 0), unlike lrintf.
int32_t NearestInt(float value) {
  const int32_t bits = std::bit_cast<int32_t>(value + 12582912.0f);
  return (bits & 0x7fffff) - 0x400000;
}

QuantisedBlock QuantiseQ8_0(const float* x) {
  QuantisedBlock block;
  float largest = 0;
  for (int j = 0; j < 32; ++j) largest = std::fmax(largest, std::fabs(x[j]));
  const float d = largest / 127;
  const float inverse = d != 0 ? 1 / d : 0;
  block.d = HalfToFloat(FloatToHalf(d));
  for (int j = 0; j < 32; ++j) {
    // A subnormal d has an infinite inverse; the cast is kept defined, its value does not matter there.
    const float rounded = std::round(x[j] * inverse);
    block.quants[j] = std::fabs(rounded) <= 127 ? static_cast<int8_t>(rounded) : 0;
  }
  return block;
}

QuantisedBlock QuantiseQ8_K(const float* x) {
  QuantisedBlock block;
  float largest = 0, at_largest = 0;
  for (int j = 0; j < 256; ++j) {
    if (std::fabs(x[j]) > largest) {
      largest = std::fabs(x[j]);
      at_largest = x[j];
    }
  }
  if (largest == 0) return block;
  const float scale = -127.0f / at_largest;
  for (int j = 0; j < 256; ++j) {
    const int32_t quant = NearestInt(scale * x[j]);
    block.quants[j] = static_cast<int8_t>(quant < 127 ? quant : 127);
  }
  block.d = 1 / scale;
  return block;
}

int32_t Sum(const int8_t* quants, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += quants[i];
  return sum;
}

// Block number `at` of a planar row.
void WritePlanar(DType dtype, const QuantisedBlock& block, uint8_t* row, int64_t row_k, int64_t at) {
  const int64_t size = Row(dtype).block_elements;
  const int64_t group = dtype == DType::kQ8_0 ? 32 : 16;
  const PlanarRow planar = PlanarRowOf(dtype, row_k);
  std::memcpy(row + at * size, block.quants, size);
  std::memcpy(row + planar.scales + at * 4, &block.d, 4);
  for (int64_t g = 0; g < size / group; ++g) {
    const int16_t sum = static_cast<int16_t>(Sum(block.quants + g * group, group));
    std::memcpy(row + planar.sums + (at * (size / group) + g) * 2, &sum, 2);
  }
  for (int64_t g = 0; dtype == DType::kQ8_K && g < 8; ++g) {
    const int16_t sum = static_cast<int16_t>(Sum(block.quants + g * 32, 32));
    std::memcpy(row + planar.wide_sums + (at * 8 + g) * 2, &sum, 2);
  }
}

}  // namespace

QuantisedBlock QuantiseBlock(DType dtype, const float* x) {
  QUERN_CHECK(dtype == DType::kQ8_0 || dtype == DType::kQ8_K);
  return dtype == DType::kQ8_0 ? QuantiseQ8_0(x) : QuantiseQ8_K(x);
}

void QuantiseToBlocks(DType dtype, const float* x, int64_t k, uint8_t* row) {
  const DTypeRow& type = Row(dtype);
  QUERN_CHECK(k % type.block_elements == 0);
  for (int64_t j = 0; j < k; j += type.block_elements, row += type.block_bytes) {
    const QuantisedBlock block = QuantiseBlock(dtype, x + j);
    if (dtype == DType::kQ8_0) {
      const uint16_t d = FloatToHalf(block.d);
      std::memcpy(row, &d, 2);
      std::memcpy(row + 2, block.quants, 32);
      continue;
    }
    std::memcpy(row, &block.d, 4);
    std::memcpy(row + 4, block.quants, 256);
    for (int g = 0; g < 16; ++g) {
      const int16_t sum = static_cast<int16_t>(Sum(block.quants + g * 16, 16));
      std::memcpy(row + 260 + g * 2, &sum, 2);
    }
  }
}

void QuantiseToPlanar(DType dtype, const float* x, int64_t k, uint8_t* row, int64_t row_k, int64_t start) {
  const int64_t size = Row(dtype).block_elements;
  QUERN_CHECK(k % size == 0 && start % size == 0);
  for (int64_t j = 0; j < k; j += size) {
    WritePlanar(dtype, QuantiseBlock(dtype, x + j), row, row_k, (start + j) / size);
  }
}

void BlocksToPlanar(DType dtype, const uint8_t* blocks, int64_t k, uint8_t* row, int64_t row_k, int64_t start) {
  const int64_t size = Row(dtype).block_elements;
  QUERN_CHECK(k % size == 0 && start % size == 0);
  for (int64_t j = 0; j < k; j += size) {
    QuantisedBlock block;
    for (int64_t i = 0; i < size; ++i) {
      const BlockElement element = ReadBlockElement(dtype, blocks, j + i);
      block.d = element.d;
      block.quants[i] = static_cast<int8_t>(element.code - FormatOf(dtype).zero);
    }
    WritePlanar(dtype, block, row, row_k, (start + j) / size);
  }
}

}  // namespace quern::kir
