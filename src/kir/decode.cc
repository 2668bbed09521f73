#include "kir/decode.h"

#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "kir/layout.h"

// The values are defined without fused multiply-adds; clang contracts within an expression unless told.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

namespace quern::kir {
namespace {

template <typename T>
T LoadAs(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void StoreAs(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

float LoadHalf(const uint8_t* at) { return HalfToFloat(LoadAs<uint16_t>(at)); }

// d f16, 16 bytes: low nibbles are elements 0..15, high nibbles 16..31.
BlockElement ReadQ4_0(const uint8_t* block, int64_t j) {
  const uint8_t byte = block[2 + j % 16];
  return {.code = j < 16 ? byte & 15 : byte >> 4, .d = LoadHalf(block)};
}

// d f16, 32 int8.
BlockElement ReadQ8_0(const uint8_t* block, int64_t j) {
  return {.code = static_cast<int8_t>(block[2 + j]) + 128, .d = LoadHalf(block)};
}

// What q4_K and q5_K start with: d, dmin f16; 12 bytes of packed six-bit scales and minimums of the eight sub-blocks.
// Then, at `nibbles`, 4 chunks of 32 bytes, chunk i holding sub-block 2i in its low nibbles and 2i + 1 in its high
// ones.
BlockElement ReadSixBitScales(const uint8_t* block, const uint8_t* nibbles, int64_t j) {
  const uint8_t* packed = block + 4;
  const int64_t sub = j / 32;
  BlockElement element{.d = LoadHalf(block), .dmin = LoadHalf(block + 2)};
  if (sub < 4) {
    element.scale = packed[sub] & 63;
    element.minimum = packed[sub + 4] & 63;
  } else {
    element.scale = (packed[sub + 4] & 15) | (packed[sub - 4] >> 6) << 4;
    element.minimum = packed[sub + 4] >> 4 | (packed[sub] >> 6) << 4;
  }
  const uint8_t byte = nibbles[sub / 2 * 32 + j % 32];
  element.code = sub % 2 == 0 ? byte & 15 : byte >> 4;
  return element;
}

BlockElement ReadQ4_K(const uint8_t* block, int64_t j) { return ReadSixBitScales(block, block + 16, j); }

// Before the nibbles 32 bytes of fifth bits: bit i of byte l is that of element l of sub-block i.
BlockElement ReadQ5_K(const uint8_t* block, int64_t j) {
  BlockElement element = ReadSixBitScales(block, block + 48, j);
  element.code |= (block[16 + j % 32] >> j / 32 & 1) << 4;
  return element;
}

// ql[128], qh[64], 16 signed scales, d f16. Each half of 128 elements is four streams of 32: the low four bits of
// streams 0 and 2 share 32 bytes of ql, those of 1 and 3 the next 32; the top two bits of all four share 32 bytes of
// qh.
BlockElement ReadQ6_K(const uint8_t* block, int64_t j) {
  const int64_t half = j / 128, stream = j % 128 / 32, lane = j % 32;
  const uint8_t low = block[half * 64 + stream % 2 * 32 + lane];
  const uint8_t high = block[128 + half * 32 + lane];
  const int nibble = stream < 2 ? low & 15 : low >> 4;
  return {.code = nibble | (high >> (2 * stream) & 3) << 4,
          .scale = static_cast<int8_t>(block[192 + j / 16]),
          .d = LoadHalf(block + 208)};
}

// d f32, 256 int8, 16 int16 sums of 16 quants.
BlockElement ReadQ8_K(const uint8_t* block, int64_t j) {
  return {.code = static_cast<int8_t>(block[4 + j]), .d = LoadAs<float>(block)};
}

float ValueQ4_0(const BlockElement& e) { return static_cast<float>(e.code - 8) * e.d; }
float ValueQ8_0(const BlockElement& e) { return static_cast<float>(e.code - 128) * e.d; }
float ValueWithMinimum(const BlockElement& e) {
  const float scale = e.d * static_cast<float>(e.scale), minimum = e.dmin * static_cast<float>(e.minimum);
  const float product = scale * static_cast<float>(e.code);
  return product - minimum;
}
float ValueQ6_K(const BlockElement& e) {
  const float scale = e.d * static_cast<float>(e.scale);
  return scale * static_cast<float>(e.code - 32);
}
float ValueQ8_K(const BlockElement& e) { return e.d * static_cast<float>(e.code); }

struct FormatRow {
  DType dtype;
  BlockElement (*read)(const uint8_t* block, int64_t j);
  float (*value)(const BlockElement& element);
};
constexpr FormatRow kFormats[] = {
    {DType::kQ4_0, ReadQ4_0, ValueQ4_0},        {DType::kQ8_0, ReadQ8_0, ValueQ8_0},
    {DType::kQ4_K, ReadQ4_K, ValueWithMinimum}, {DType::kQ5_K, ReadQ5_K, ValueWithMinimum},
    {DType::kQ6_K, ReadQ6_K, ValueQ6_K},        {DType::kQ8_K, ReadQ8_K, ValueQ8_K},
};

const FormatRow& Format(DType dtype) {
  QUERN_CHECK(IsBlock(dtype));
  const FormatRow& row = kFormats[static_cast<int>(dtype) - static_cast<int>(DType::kQ4_0)];
  QUERN_DCHECK(row.dtype == dtype);
  return row;
}

}  // namespace

BlockElement ReadBlockElement(DType dtype, const uint8_t* row, int64_t j) {
  const DTypeRow& type = Row(dtype);
  return Format(dtype).read(row + j / type.block_elements * type.block_bytes, j % type.block_elements);
}

float BlockValue(DType dtype, const BlockElement& element) { return Format(dtype).value(element); }

float DecodeElement(DType dtype, const uint8_t* row, int64_t j) {
  return BlockValue(dtype, ReadBlockElement(dtype, row, j));
}

void DecodeRow(DType dtype, const uint8_t* row, int64_t k, float* values) {
  for (int64_t j = 0; j < k; ++j) values[j] = DecodeElement(dtype, row, j);
}

float DecodePlanar(DType dtype, const uint8_t* row, int64_t k, int64_t j) {
  const int32_t quant = static_cast<int8_t>(row[j]);
  const float d = LoadAs<float>(row + PlanarRowOf(dtype, k).scales + j / Row(dtype).block_elements * 4);
  return BlockValue(dtype, {.code = dtype == DType::kQ8_0 ? quant + 128 : quant, .d = d});
}

float DecodePanel16(DType dtype, const uint8_t* panel, int64_t k, int64_t row, int64_t j) {
  const Panel16 at = Panel16Of(dtype, k);
  // The panel keeps d * scale as one f32: a scale of 1 then gives the same product, bit for bit.
  BlockElement element{.code = panel[Panel16CodeOffset(row, j)],
                       .scale = 1,
                       .d = LoadAs<float>(panel + at.scales + (j / PanelGroup(dtype) * 16 + row) * 4)};
  if (HasMinimums(dtype)) {
    element.minimum = LoadAs<int16_t>(panel + at.mins + (j / 64 * 32 + row * 2 + j / 32 % 2) * 2);
    element.dmin = LoadAs<float>(panel + at.supers + (j / 256 * 16 + row) * 4);
  }
  return BlockValue(dtype, element);
}

void WritePanel16(DType dtype, uint8_t* panel, int64_t k, int64_t row, int64_t j, const BlockElement& element) {
  const Panel16 at = Panel16Of(dtype, k);
  const float scale = IsKQuant(dtype) ? element.d * static_cast<float>(element.scale) : element.d;
  panel[Panel16CodeOffset(row, j)] = static_cast<uint8_t>(element.code);
  StoreAs(panel + at.scales + (j / PanelGroup(dtype) * 16 + row) * 4, scale);
  if (HasMinimums(dtype)) {
    StoreAs(panel + at.mins + (j / 64 * 32 + row * 2 + j / 32 % 2) * 2, static_cast<int16_t>(element.minimum));
    StoreAs(panel + at.supers + (j / 256 * 16 + row) * 4, element.dmin);
  }
}

}  // namespace quern::kir
