#include "kir/quantise.h"

#include <cstring>

#include "base/block_format.h"
#include "base/check.h"
#include "kir/decode.h"
#include "kir/layout.h"

// The arithmetic is part of the result; clang contracts within an expression unless told.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

namespace quern::kir {
namespace {

constexpr int kMostBytes = 512;  // of a block

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
  const BlockFormat& format = FormatOf(dtype);
  QUERN_CHECK(format.sums > 0 && format.quantise != nullptr);
  uint8_t bytes[kMostBytes];
  QUERN_CHECK(format.bytes <= kMostBytes);
  format.quantise(x, bytes);
  QuantisedBlock block;
  for (int64_t i = 0; i < format.elements; ++i) {
    const BlockElement element = ReadBlockElement(dtype, bytes, i);
    block.d = element.d;
    block.quants[i] = static_cast<int8_t>(element.code - format.zero);
  }
  return block;
}

void QuantiseToBlocks(DType dtype, const float* x, int64_t k, uint8_t* row) {
  const BlockFormat& format = FormatOf(dtype);
  QUERN_CHECK(k % format.elements == 0 && format.quantise != nullptr);
  for (int64_t j = 0; j < k; j += format.elements, row += format.bytes) format.quantise(x + j, row);
}

void QuantiseToBlocksBy(DType dtype, const float* x, const float* importance, int64_t k, uint8_t* row) {
  const BlockFormat& format = FormatOf(dtype);
  if (format.quantise_by == nullptr) return QuantiseToBlocks(dtype, x, k, row);
  QUERN_CHECK(k % format.elements == 0);
  // As ggml adds up a row, in f32 from its beginning on.
  float squares = 0;
  for (int64_t j = 0; j < k; ++j) squares += x[j] * x[j];
  const float mean = squares / static_cast<float>(k);
  for (int64_t j = 0; j < k; j += format.elements, row += format.bytes)
    format.quantise_by(x + j, {importance + j, mean}, row);
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
