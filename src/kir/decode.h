// Decoding of the ggml block formats: the only scalar decoder of each, whatever the layout the bytes lie in.
//
// A format is described twice and no more: where the fields of element j are in a block (ReadBlockElement), and what
// their value is (BlockValue). Every layout of a format stores the same fields, so all give the same f32, bit for bit
// that of ggml's dequantize_row_*:
//   q4_0  (code - 8) * d          q8_0  (code - 128) * d        q8_K  code * d
//   q4_K, q5_K  (d * scale) * code - dmin * minimum             q6_K  (d * scale) * (code - 32)
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace quern::kir {

// What the bytes say of one element, before any arithmetic. Fields a format lacks are 0.
struct BlockElement {
  int32_t code = 0;     // the stored quant, unsigned as a panel16 holds it (q8_0: quant + 128); q8_K: the signed quant
  int32_t scale = 0;    // of the group: q4_K and q5_K 6 bits, q6_K signed 8 bits
  int32_t minimum = 0;  // of the group: q4_K and q5_K 6 bits
  float d = 0;          // of the block
  float dmin = 0;       // of the block: q4_K and q5_K
};

// Element j of a row of @blocks. Precondition: `dtype` is a block format and the row has more than j elements.
BlockElement ReadBlockElement(DType dtype, const uint8_t* row, int64_t j);
// The value of an element, in f32 arithmetic of the order above, uncontracted.
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
