// What quantisers of several formats have in common: how scales are searched, and how bits are put together. In the
// arithmetic of ggml's quantisers, step by step, so that blocks are theirs, bit for bit: sums are of f32 in the order
// of the elements, nothing is contracted. Those by an importance are what ggml-quants.c has as quantize_row_*_impl, and
// their searches make_qx_quants (SearchAround), make_qkx3_quants (SearchAffine) and make_qp_quants (SearchPositive).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/block_format.h"
#include "base/half.h"

namespace quern::formats {

// The nearest integer, half to even, of what 23 bits hold: adding 1.5 * 2^23 leaves it in the low bits. Defined for
// every number, unlike lrintf; what is out of range, and NaN, gives some number.
inline int NearestInt(float value) {
  const int32_t bits = std::bit_cast<int32_t>(value + 12582912.0f);
  return (bits & 0x7fffff) - 0x400000;
}

// Toward zero; 0 of what a byte does not hold.
inline int ToByte(float value) { return value > -129.0f && value < 128.0f ? static_cast<int>(value) : 0; }

inline int Clamped(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

inline void PutHalf(uint8_t* at, float value) {
  const uint16_t half = FloatToHalf(value);
  std::memcpy(at, &half, sizeof half);
}
inline float HalfAt(const uint8_t* at) {
  uint16_t half;
  std::memcpy(&half, at, sizeof half);
  return HalfToFloat(half);
}

// What no group's greatest magnitude is below but of zeros alone.
inline constexpr float kLeastOfGroup = 1e-15f;

// The element of the greatest magnitude, the first of equals; 0 of none.
float Farthest(std::span<const float> x);

// Of the elements' squares, as much as an element counts: importance * sqrt(spread + x * x).
void Weigh(std::span<const float> x, const float* importance, float spread, float* weights);
float SumOf(std::span<const float> x);
float SumOfSquares(std::span<const float> x);

// 16 bytes of nibbles, of codes 0 to 15 in the low ones, 16 to 31 in the high ones; codes above 15 are cut.
void PackNibbles(const uint8_t* codes, uint8_t* bytes);
// 4 bytes of their fifth bits, bit b of byte a that of code 8a + b.
void PackFifthBits(const uint8_t* codes, uint8_t* bytes);
// 64 bytes of bit pairs, each half of 128 elements four streams of 32 that share 32 bytes; codes above 3 are cut.
void PackPairs(const uint8_t* codes, uint8_t* bytes);

// Blocks of 32 by the extreme on zero's other side: d = extreme / -zero, codes are x / d + zero, at most 2 zero - 1.
// Returns d.
float QuantiseAround(const float* x, int zero, uint8_t* codes);
// Blocks of 32 from least to greatest: d = (greatest - least) / most, codes are (x - least) / d. Returns d.
float QuantiseBetween(const float* x, int most, uint8_t* codes, float& least);

// Codes 0 to `most` with a scale and a minimum that is no greater than 0: x is near scale * code + minimum. Tried are
// scales from (start + most) / range by `step`, `steps` and one more; kept is what errs least, by `weights`, in squares
// or in magnitudes. Returns the scale, not negative; `taken` is -minimum.
struct AffineSearch {
  int most;
  float start = -0.9f, step = 0.05f;  // as they are by an importance
  int steps = 36;
  bool magnitudes = false;
};
float SearchAffine(std::span<const float> x, const float* weights, const AffineSearch& search, uint8_t* codes,
                   float& taken);

// Codes 0 to 2 zero - 1 with a scale: x is near scale * (code - zero). Tried are the farthest element's as -zero, and
// nine steps of a tenth either way; kept is what errs least, in squares by `weights`. Returns the scale; codes of a
// group of zeros are 0.
float SearchAround(std::span<const float> x, const float* weights, int zero, uint8_t* codes);
// Codes 0 to `most` with a scale, of what is not negative: scales of groups. Tried are the greatest as `most`, and four
// steps of a tenth either way; then codes are changed one by one while the sum of squares by `weights` falls. A
// negative number may become a code above `most`: codes are bytes, as in ggml. Returns the scale.
float SearchPositive(std::span<const float> x, const float* weights, int most, uint8_t* codes);

// d, dmin and the twelve bytes of scales and minimums of q4_K and q5_K, and the codes, of 256 elements.
void QuantiseWithMinimums(const float* x, const AffineSearch& search, uint8_t* block, uint8_t* codes);
// The same by an importance: codes up to `most`. `cut`: a scale's code that is above 63, as a negative scale's is, is
// 63; else it spills into its neighbour's bits.
void QuantiseWithMinimumsBy(const float* x, const float* importance, int most, bool cut, uint8_t* block,
                            uint8_t* codes);

// iq4_nl's levels: the scale of a group of 32 that errs least, in squares by `weights`.
float SearchLevels(const float* x, const float* weights, std::span<const int8_t> levels);
// The level nearest to `value`, the upper one of two that are as near; levels ascend.
int NearestLevel(std::span<const int8_t> levels, float value);

}  // namespace quern::formats
