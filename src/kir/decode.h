// Decoding of the block formats, of any layout that the bytes lie in: runs what base/block_format.h says of a format.
// Its fields and its value are two functions, since every layout stores the same fields and so gives the same f32, bit
// for bit that of ggml's dequantize_row_*.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace quern::kir {

// What the bytes say of one element, before any arithmetic.
struct BlockElement {
  int32_t code = 0;  // 0 to 255, as a panel16 holds it
  int32_t scale = 1;
  int32_t minimum = 0;
  float d = 0;
  float dmin = 0;
  float added = 0;
};

// Element j of a row of @blocks. Precondition: `dtype` is a block format and the row has more than j elements.
BlockElement ReadBlockElement(DType dtype, const uint8_t* row, int64_t j);
// The value of an element, in f32 arithmetic, uncontracted.
float BlockValue(DType dtype, const BlockElement& element);

// Element j of a row of @blocks; elements 0..k of one.
float DecodeElement(DType dtype, const uint8_t* row, int64_t j);
void DecodeRow(DType dtype, const uint8_t* row, int64_t k, float* values);

// Element j of a row of `k` elements @planar (q8_0, q8_K).
float DecodePlanar(DType dtype, const uint8_t* row, int64_t k, int64_t j);
// Element j of row 0..15 of a panel of `k` elements @panel16, and that element's fields written there.
float DecodePanel16(DType dtype, const uint8_t* panel, int64_t k, int64_t row, int64_t j);
void WritePanel16(DType dtype, uint8_t* panel, int64_t k, int64_t row, int64_t j, const BlockElement& element);

// Where element (row, j) of a panel keeps its code, in bytes: [K/4][16][4].
inline int64_t Panel16CodeOffset(int64_t row, int64_t j) { return j / 4 * 64 + row * 4 + j % 4; }
// Where element (row, j) of a @kn32 panel is, in f32s: [K][32].
inline int64_t Kn32Offset(int64_t row, int64_t j) { return j * 32 + row; }

}  // namespace quern::kir
