// C as a language of codegen/text, and the helper functions that it alone has. In their text, besides what helpers.h
// says:
//   $R type of f32 values ("double" when wide)
#include <string>

#include "absl/strings/str_cat.h"
#include "codegen/c/emitter.h"
#include "codegen/text/helpers.h"

namespace quern::c {
namespace {

using text::Helper, text::Over;

constexpr Helper kHelpers[] = {
    // Floats
    {"odd_i64", Over::kNone,
     R"(double odd_i64(int64_t x) {  // rounds to 32 bits and fewer as x does: what is lost sets the last bit
  return x > -0x1p53 && x < 0x1p53 ? (double)x : (double)((x & ~INT64_C(0x7ff)) | ((x & 0x7ff) != 0 ? 0x800 : 0));
})"},
    {"odd_u64", Over::kNone, R"(double odd_u64(uint64_t x) {
  return x < 0x1p53 ? (double)x : (double)((x & ~UINT64_C(0x7ff)) | ((x & 0x7ff) != 0 ? 0x800U : 0U));
})"},
    {"round_f32", Over::kNone, "$R round_f32($R x) { return (float)x; }"},
    {"round_f16", Over::kNone, "$R round_f16(double x) { return from_bits_f16(bits_of_f16(x)); }"},
    {"round_bf16", Over::kNone, "$R round_bf16(double x) { return from_bits_bf16(bits_of_bf16(x)); }"},
    {"bits_of_f32", Over::kNone, "uint32_t bits_of_f32(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }"},
    {"bits_of_f64", Over::kNone,
     "uint64_t bits_of_f64(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }"},
    {"bits_of_f16", Over::kNone, "uint16_t bits_of_f16(double x) { return narrow(x, 10, -14, 0x7c00); }"},
    {"bits_of_bf16", Over::kNone, "uint16_t bits_of_bf16(double x) { return narrow(x, 7, -126, 0x7f80); }"},
    {"from_bits_f32", Over::kNone, "$R from_bits_f32(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }"},
    {"from_bits_f64", Over::kNone, "double from_bits_f64(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }"},
    {"from_bits_bf16", Over::kNone, "$R from_bits_bf16(uint16_t bits) { return from_bits_f32((uint32_t)bits << 16); }"},
    {"from_bits_f16", Over::kNone, R"($R from_bits_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const $R sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return exponent == 0 ? sign * ldexpf(fraction, -24) : sign * ldexpf(fraction + 1024, exponent - 25);
})"},
    {"narrow", Over::kNone, R"(uint16_t narrow(double x, int fraction_bits, int least_exponent, uint16_t infinity) {
  // The nearest 16-bit float, halves to even: x counted in units of its last place, which carry into the exponent.
  const uint16_t sign = signbit(x) ? 0x8000 : 0;
  if (x != x) return sign | infinity | 1 << (fraction_bits - 1);
  const double size = fabs(x);
  if (size > 0x1p200) return sign | infinity;
  int exponent = size < 0x1p-200 ? least_exponent : ilogb(size);
  if (exponent < least_exponent) exponent = least_exponent;
  const int64_t units = (int64_t)rint(ldexp(size, fraction_bits - exponent));
  const int64_t bits = ((int64_t)(exponent - least_exponent) << fraction_bits) + units;
  return sign | (uint16_t)(bits < infinity ? bits : infinity);
})"},

    // Block formats
    {"block_element", Over::kNone,
     "typedef struct block_element { int code, scale, minimum; float d, dmin, added; } block_element;"},
    {"decode", Over::kBlock, R"($R decode_$D(const uint8_t* row, int64_t j) {
  const block_element e = read_$D(row, j);
  return value_$D($of_e);
})"},
    {"read", Over::kBlock, R"(block_element read_$D(const uint8_t* row, int64_t j) {
  const uint8_t* const block = row + j / $B * $N;
  const int i = (int)(j % $B);
$fields  return (block_element){$members};
})"},
    {"read_half", Over::kNone,
     "float read_half(const uint8_t* at) { return (float)from_bits_f16((uint16_t)(at[0] | at[1] << 8)); }"},
    {"read_float", Over::kNone, "float read_float(const uint8_t* at) { float x; memcpy(&x, at, 4); return x; }"},

    // @planar rows: quants [k], f32 scales, int16 sums; each plane starts at a multiple of 64.
    {"align_64", Over::kNone, "int64_t align_64(int64_t bytes) { return (bytes + 63) / 64 * 64; }"},
    {"planar", Over::kBlock, R"($R planar_$D(const uint8_t* row, int64_t k, int64_t j) {
  return read_float(row + align_64(k) + j / $B * 4) * (int8_t)row[j];
})"},
    {"write_planar", Over::kBlock,
     R"(void write_planar_$D(uint8_t* row, int64_t k, int64_t block, const int8_t* quants, float d) {
  const int64_t scales = align_64(k), sums = scales + align_64(k / $B * 4), wide_sums = sums + align_64(k / $S * 2);
  memcpy(row + block * $B, quants, $B);
  memcpy(row + scales + block * 4, &d, 4);
  int16_t sum = 0, wide_sum = 0;
  for (int64_t j = block * $B; j < (block + 1) * $B; ++j) {
    sum += (int8_t)row[j], wide_sum += (int8_t)row[j];
    if (j % $S == $S - 1) memcpy(row + sums + j / $S * 2, &sum, 2), sum = 0;
    if ($S == 16 && j % 32 == 31) memcpy(row + wide_sums + j / 32 * 2, &wide_sum, 2), wide_sum = 0;
  }
})"},
    {"quantise_q8_0", Over::kNone,
     R"(void quantise_q8_0(uint8_t* row, int64_t k, int64_t start, const float* x, int64_t count) {
  for (int64_t b = 0; b < count / 32; ++b, x += 32) {
    float largest = 0;
    for (int j = 0; j < 32; ++j) largest = fmaxf(largest, fabsf(x[j]));
    const float d = largest / 127, inverse = d != 0 ? 1 / d : 0;
    int8_t quants[32];
    for (int j = 0; j < 32; ++j) {  // half away from zero; a d too small to invert gives 0
      const float rounded = roundf(x[j] * inverse);
      quants[j] = fabsf(rounded) <= 127 ? (int8_t)rounded : 0;
    }
    write_planar_q8_0(row, k, start / 32 + b, quants, (float)round_f16(d));
  }
})"},
    {"quantise_q8_K", Over::kNone,
     R"(void quantise_q8_K(uint8_t* row, int64_t k, int64_t start, const float* x, int64_t count) {
  for (int64_t b = 0; b < count / 256; ++b, x += 256) {
    float extreme = 0;  // the first of those that are largest without their sign
    for (int j = 0; j < 256; ++j) extreme = fabsf(x[j]) > fabsf(extreme) ? x[j] : extreme;
    const float scale = extreme != 0 ? -127.0f / extreme : 0;
    int8_t quants[256];
    for (int j = 0; j < 256; ++j) {  // half to even, by a sum whose last mantissa bit counts 1
      const int quant = (int)(bits_of_f32(scale * x[j] + 12582912.0f) & 0x7fffff) - 0x400000;
      quants[j] = (int8_t)(extreme == 0 ? 0 : quant < 127 ? quant : 127);
    }
    write_planar_q8_K(row, k, start / 256 + b, quants, extreme != 0 ? 1 / scale : 0);
  }
})"},

    // @panel16: codes [k/4][16][4], f32 scale of each group [k/group][16]; with minimums: int16 [k/group/2][16][2] of
    // them, f32 dmin [k/256][16]; or what is added, f32 [k/32][16].
    {"panel", Over::kBlock, R"($R panel_$D(const uint8_t* panel, int64_t k, int64_t row, int64_t j) {
  // The panel holds d * scale: a scale of 1 gives the same product.
  block_element e = {.code = panel[j / 4 * 64 + row * 4 + j % 4], .scale = 1};
  e.d = read_float(panel + k * 16 + (j / $G * 16 + row) * 4);
  if ($M) {
    e.minimum = panel[k * 16 + k / $G * 64 + (j / $G / 2 * 32 + row * 2 + j / $G % 2) * 2];
    e.dmin = read_float(panel + k * 16 + k / $G * 96 + (j / $B * 16 + row) * 4);
  }
  if ($A) e.added = read_float(panel + k * 16 + k / $G * 64 + (j / $B * 16 + row) * 4);
  return value_$D($of_e);
})"},
    {"pack", Over::kBlock,
     R"(void pack_$D(uint8_t* panel, int64_t k, int64_t row, const uint8_t* blocks, int64_t start) {
  for (int64_t j = 0; j < k; ++j) {
    const block_element e = read_$D(blocks, start + j);
    const float scale = $X ? e.d * e.scale : e.d;
    const int16_t minimum = (int16_t)e.minimum;
    panel[j / 4 * 64 + row * 4 + j % 4] = (uint8_t)e.code;
    memcpy(panel + k * 16 + (j / $G * 16 + row) * 4, &scale, 4);
    if ($M) {
      memcpy(panel + k * 16 + k / $G * 64 + (j / $G / 2 * 32 + row * 2 + j / $G % 2) * 2, &minimum, 2);
      memcpy(panel + k * 16 + k / $G * 96 + (j / $B * 16 + row) * 4, &e.dmin, 4);
    }
    if ($A) memcpy(panel + k * 16 + k / $G * 64 + (j / $B * 16 + row) * 4, &e.added, 4);
  }
})"},
};

// Functions of libm and what compilers define; the functions also with their f.
constexpr std::string_view kTaken =
    " linux unix register memcpy memset floor ceil trunc rint round exp exp2 expm1 log log2 log1p sin cos tan atan "
    "atan2 tanh erf "
    "sqrt pow fma fabs "
    "fmax fmod ilogb ldexp signbit ";

bool IsTaken(std::string_view word) {
  return word.ends_with('f') &&
         kTaken.find(absl::StrCat(" ", std::string(word.substr(0, word.size() - 1)), " ")) != std::string_view::npos;
}

std::string Function(std::string_view name, DType dtype) {
  return absl::StrCat(std::string(name), dtype == DType::kF64 ? "" : "f");
}

text::Language::Words Words(const text::Language& language, DType) {
  return {{"$R", language.wide ? "double" : "float"}};
}

}  // namespace

text::Language LanguageOf(bool wide) {
  return {.name = "C",
          .types = {"float", "uint16_t", "uint16_t", "double", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t",
                    "uint16_t", "uint32_t", "uint64_t", "uint8_t"},
          .function = Function,
          .wide = wide,
          .helpers = kHelpers,
          .words = Words,
          .taken = kTaken,
          .is_taken = IsTaken};
}

std::string Prelude(std::string_view body, bool wide) {
  return R"(#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#pragma STDC FP_CONTRACT OFF

#ifndef QUERN_ABI_H_
typedef struct quern_args {
  void* const* buffers;
  const int64_t* symbols;
} quern_args;
#endif

)" + text::HelpersFor(LanguageOf(wide), body);
}

}  // namespace quern::c
