// The helper functions of emitted C, templates over dtypes or formats. In their text:
//   $D name of the dtype   $T C type   $W width in bits   $L, $H least and greatest value
//   $F, $f float type and libm suffix
//   $R type of f32 values ("double" when wide)
//   formats: $B elements a block, $S quants a sum, $G elements that share a scale, $M has minimums, $X has group scales
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/c/emitter.h"

namespace quern::c {
namespace {

enum class Over : uint8_t { kNone, kSigned, kUnsigned, kInteger, kFloat, kBlock };

struct Helper {
  const char* name;  // without its "_<dtype>"
  Over over;
  const char* text;
};

constexpr Helper kHelpers[] = {
    {"inside", Over::kNone, "bool inside(int64_t i, int64_t size) { return (uint64_t)i < (uint64_t)size; }"},

    // Integers: two's complement, no undefined overflow.
    {"neg", Over::kInteger, "$T neg_$D($T a) { return ($T)(0 - (uint64_t)a); }"},
    {"abs", Over::kSigned, "$T abs_$D($T a) { return a < 0 ? ($T)(0 - (uint64_t)a) : a; }"},
    {"abs", Over::kUnsigned, "$T abs_$D($T a) { return a; }"},
    {"not", Over::kInteger, "$T not_$D($T a) { return ($T)~a; }"},
    {"add", Over::kInteger, "$T add_$D($T a, $T b) { return ($T)((uint64_t)a + (uint64_t)b); }"},
    {"sub", Over::kInteger, "$T sub_$D($T a, $T b) { return ($T)((uint64_t)a - (uint64_t)b); }"},
    {"mul", Over::kInteger, "$T mul_$D($T a, $T b) { return ($T)((uint64_t)a * (uint64_t)b); }"},
    {"div", Over::kSigned,
     "$T div_$D($T a, $T b) { return b == 0 ? 0 : b == -1 ? ($T)(0 - (uint64_t)a) : ($T)(a / b); }"},
    {"div", Over::kUnsigned, "$T div_$D($T a, $T b) { return b == 0 ? 0 : ($T)(a / b); }"},
    {"mod", Over::kSigned, R"($T mod_$D($T a, $T b) {  // the sign of b
  if (b == 0 || b == -1) return 0;
  const $T rest = ($T)(a % b);
  return rest != 0 && (rest < 0) != (b < 0) ? ($T)(rest + b) : rest;
})"},
    {"mod", Over::kUnsigned, "$T mod_$D($T a, $T b) { return b == 0 ? 0 : ($T)(a % b); }"},
    {"min", Over::kInteger, "$T min_$D($T a, $T b) { return b < a ? b : a; }"},
    {"max", Over::kInteger, "$T max_$D($T a, $T b) { return a < b ? b : a; }"},
    {"shl", Over::kSigned, "$T shl_$D($T a, $T n) { return n < 0 || n >= $W ? 0 : ($T)((uint64_t)a << n); }"},
    {"shl", Over::kUnsigned, "$T shl_$D($T a, $T n) { return n >= $W ? 0 : ($T)((uint64_t)a << n); }"},
    {"shr", Over::kSigned, R"($T shr_$D($T a, $T n) {  // with the sign, also where the count is out of range
  const int count = n < 0 || n >= $W ? $W - 1 : (int)n;
  return ($T)(a < 0 ? ~(~a >> count) : a >> count);
})"},
    {"shr", Over::kUnsigned, "$T shr_$D($T a, $T n) { return n >= $W ? 0 : ($T)(a >> n); }"},
    {"saturate", Over::kInteger, R"($T saturate_$D(double x) {  // toward zero; NaN gives 0
  if (x != x) return 0;
  if (x <= (double)$L) return $L;
  return x >= (double)$H ? $H : ($T)x;
})"},

    // Floats
    {"mod", Over::kFloat, R"($F mod_$D($F a, $F b) {  // the sign of b
  const $F rest = fmod$f(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
})"},
    {"min", Over::kFloat, "$F min_$D($F a, $F b) { return a != a ? a : b != b ? b : b < a ? b : a; }"},
    {"max", Over::kFloat, "$F max_$D($F a, $F b) { return a != a ? a : b != b ? b : a < b ? b : a; }"},
    {"rsqrt", Over::kFloat, "$F rsqrt_$D($F x) { return 1 / sqrt$f(x); }"},
    {"sigmoid", Over::kFloat, "$F sigmoid_$D($F x) { return 1 / (1 + exp$f(-x)); }"},
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

    // Block formats. A block is read to its fields, whose value does not depend on the layout.
    {"block_element", Over::kNone,
     "typedef struct block_element { int code, scale, minimum; float d, dmin; } block_element;"},
    {"decode", Over::kBlock, "$R decode_$D(const uint8_t* row, int64_t j) { return value_$D(read_$D(row, j)); }"},
    {"read_half", Over::kNone,
     "float read_half(const uint8_t* at) { return (float)from_bits_f16((uint16_t)(at[0] | at[1] << 8)); }"},
    {"read_float", Over::kNone, "float read_float(const uint8_t* at) { float x; memcpy(&x, at, 4); return x; }"},
    {"read_q4_0", Over::kNone,
     R"(block_element read_q4_0(const uint8_t* row, int64_t j) {  // f16 d, 16 bytes of nibbles
  const uint8_t* const block = row + j / 32 * 18;
  const int byte = block[2 + j % 16];
  return (block_element){.code = j % 32 < 16 ? byte & 15 : byte >> 4, .d = read_half(block)};
})"},
    {"value_q4_0", Over::kNone, "float value_q4_0(block_element e) { return (e.code - 8) * e.d; }"},
    {"read_q8_0", Over::kNone, R"(block_element read_q8_0(const uint8_t* row, int64_t j) {  // f16 d, 32 int8
  const uint8_t* const block = row + j / 32 * 34;
  return (block_element){.code = (int8_t)block[2 + j % 32] + 128, .d = read_half(block)};
})"},
    {"value_q8_0", Over::kNone, "float value_q8_0(block_element e) { return (e.code - 128) * e.d; }"},
    {"read_six_bits", Over::kNone,
     R"(block_element read_six_bits(const uint8_t* block, const uint8_t* nibbles, int64_t j) {
  // f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums; 4 chunks of 32 bytes: nibbles of two sub-blocks of 32 in each
  const uint8_t* const packed = block + 4;
  const int sub = (int)(j % 256 / 32);
  const int byte = nibbles[sub / 2 * 32 + j % 32];
  block_element e = {.code = sub % 2 == 0 ? byte & 15 : byte >> 4, .d = read_half(block), .dmin = read_half(block + 2)};
  e.scale = sub < 4 ? packed[sub] & 63 : (packed[sub + 4] & 15) | packed[sub - 4] >> 6 << 4;
  e.minimum = sub < 4 ? packed[sub + 4] & 63 : packed[sub + 4] >> 4 | packed[sub] >> 6 << 4;
  return e;
})"},
    {"read_q4_K", Over::kNone, R"(block_element read_q4_K(const uint8_t* row, int64_t j) {
  const uint8_t* const block = row + j / 256 * 144;
  return read_six_bits(block, block + 16, j);
})"},
    {"read_q5_K", Over::kNone, R"(block_element read_q5_K(const uint8_t* row, int64_t j) {
  // as q4_K, with 32 bytes of fifth bits before the nibbles: bit i for sub-block i
  const uint8_t* const block = row + j / 256 * 176;
  block_element e = read_six_bits(block, block + 48, j);
  e.code |= (block[16 + j % 32] >> j % 256 / 32 & 1) << 4;
  return e;
})"},
    {"value_q4_K", Over::kNone, R"(float value_q4_K(block_element e) {
  const float product = e.d * e.scale * e.code, minimum = e.dmin * e.minimum;
  return product - minimum;
})"},
    {"value_q5_K", Over::kNone, "float value_q5_K(block_element e) { return value_q4_K(e); }"},
    {"read_q6_K", Over::kNone, R"(block_element read_q6_K(const uint8_t* row, int64_t j) {
  // low nibbles [128], high pairs of bits [64], 16 int8 scales, f16 d; each half of 128 is four streams of 32
  const uint8_t* const block = row + j / 256 * 210;
  const int half = (int)(j % 256 / 128), stream = (int)(j % 128 / 32), lane = (int)(j % 32);
  const int low = block[half * 64 + stream % 2 * 32 + lane] >> stream / 2 * 4 & 15;
  const int high = block[128 + half * 32 + lane] >> stream * 2 & 3;
  return (block_element){.code = low | high << 4, .scale = (int8_t)block[192 + j % 256 / 16], .d = read_half(block + 208)};
})"},
    {"value_q6_K", Over::kNone, "float value_q6_K(block_element e) { return e.d * e.scale * (e.code - 32); }"},
    {"read_q8_K", Over::kNone,
     R"(block_element read_q8_K(const uint8_t* row, int64_t j) {  // f32 d, 256 int8, 16 int16 sums
  const uint8_t* const block = row + j / 256 * 292;
  return (block_element){.code = (int8_t)block[4 + j % 256], .d = read_float(block)};
})"},
    {"value_q8_K", Over::kNone, "float value_q8_K(block_element e) { return e.d * e.code; }"},

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

    // @panel16: codes [k/4][16][4], f32 scale of each group [k/group][16]; q4_K, q5_K: int16 minimums [k/64][16][2], f32 dmin
    // [k/256][16].
    {"panel", Over::kBlock, R"($R panel_$D(const uint8_t* panel, int64_t k, int64_t row, int64_t j) {
  // The panel holds d * scale: a scale of 1 gives the same product.
  block_element e = {.code = panel[j / 4 * 64 + row * 4 + j % 4], .scale = 1};
  e.d = read_float(panel + k * 16 + (j / $G * 16 + row) * 4);
  if ($M) {
    e.minimum = panel[k * 18 + (j / 64 * 32 + row * 2 + j / 32 % 2) * 2];
    e.dmin = read_float(panel + k * 19 + (j / 256 * 16 + row) * 4);
  }
  return value_$D(e);
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
      memcpy(panel + k * 18 + (j / 64 * 32 + row * 2 + j / 32 % 2) * 2, &minimum, 2);
      memcpy(panel + k * 19 + (j / 256 * 16 + row) * 4, &e.dmin, 4);
    }
  }
})"},
};

// Words of C, and functions that the text calls (with and without their f).
constexpr std::string_view kTaken =
    " auto bool break case char const continue default do double else enum extern false float for goto if inline int "
    "long "
    "main linux unix register restrict return short signed sizeof static struct switch true typedef union unsigned "
    "void "
    "volatile while memcpy memset floor ceil trunc rint round exp exp2 log log2 sin cos tan atan atan2 tanh erf sqrt "
    "pow fma "
    "fabs fmax fmod ilogb ldexp signbit ";

bool Applies(Over over, DType dtype) {
  switch (over) {
    case Over::kNone: return false;
    case Over::kSigned: return IsInteger(dtype) && !IsUnsigned(dtype);
    case Over::kUnsigned: return IsUnsigned(dtype);
    case Over::kInteger: return IsInteger(dtype);
    case Over::kFloat: return dtype == DType::kF32 || dtype == DType::kF64;
    case Over::kBlock: return IsBlock(dtype);
  }
  return false;
}

// The helper of that name and the dtype it is for (any, where it is for none).
std::optional<std::pair<const Helper*, DType>> FindHelper(std::string_view name) {
  for (const Helper& helper : kHelpers) {
    if (helper.over == Over::kNone && name == helper.name) return std::pair(&helper, DType::kF32);
  }
  for (const Helper& helper : kHelpers) {
    const std::string_view stem = helper.name;
    if (name.size() <= stem.size() + 1 || !name.starts_with(stem) || name[stem.size()] != '_') continue;
    const std::optional<DType> dtype = DTypeFromName(name.substr(stem.size() + 1));
    if (dtype && Applies(helper.over, *dtype)) return std::pair(&helper, *dtype);
  }
  return std::nullopt;
}

std::string Expand(const Helper& helper, DType dtype, bool wide) {
  const bool is_float = IsFloat(dtype), block = IsBlock(dtype), is_double = is_float && dtype == DType::kF64;
  const std::string width = absl::StrCat(block ? 8 : 8 * ScalarBytes(dtype));
  const std::string limit = absl::StrCat(IsUnsigned(dtype) ? "UINT" : "INT", width);
  const std::string text =
      absl::StrReplaceAll(helper.text, {{"$D", Row(dtype).name},
                                        {"$T", MemoryType(dtype)},
                                        {"$W", width},
                                        {"$L", IsUnsigned(dtype) ? "0" : limit + "_MIN"},
                                        {"$H", limit + "_MAX"},
                                        {"$F", is_double ? "double" : "float"},
                                        {"$f", is_double ? "" : "f"},
                                        {"$R", wide ? "double" : "float"},
                                        {"$B", absl::StrCat(Row(dtype).block_elements)},
                                        {"$S", dtype == DType::kQ8_K ? "16" : "32"},
                                        {"$G", absl::StrCat(kir::PanelGroup(dtype))},
                                        {"$M", kir::HasMinimums(dtype) ? "1" : "0"},
                                        {"$X", kir::IsKQuant(dtype) ? "1" : "0"}});
  return absl::StrCat(text.starts_with("typedef") ? "" : "static inline ", text, "\n");
}

// Appends the helpers that `text` names, those they need first.
void AppendHelpers(std::string_view text, bool wide, std::vector<std::string>& done, std::string& out) {
  auto is_word = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word(text.substr(at, end - at));
    at = std::max(end, at + 1);
    const auto found = FindHelper(word);
    if (!found || std::find(done.begin(), done.end(), word) != done.end()) continue;
    done.push_back(word);
    const std::string helper = Expand(*found->first, found->second, wide);
    AppendHelpers(helper, wide, done, out);
    out += helper;
  }
}

}  // namespace

const char* MemoryType(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "float";
    case DType::kF64: return "double";
    case DType::kI8: return "int8_t";
    case DType::kI16: return "int16_t";
    case DType::kI32: return "int32_t";
    case DType::kI64: return "int64_t";
    case DType::kF16: case DType::kBF16: case DType::kU16: return "uint16_t";
    case DType::kU32: return "uint32_t";
    case DType::kU64: return "uint64_t";
    case DType::kU8: case DType::kBool: return "uint8_t";
    case DType::kQ4_0: case DType::kQ8_0: case DType::kQ4_K: case DType::kQ5_K: case DType::kQ6_K: case DType::kQ8_K:
      return "uint8_t";
  }
  return "";
}

bool Reserved(std::string_view identifier) {
  // The headers define macros with capitals (INT64_C, NAN, M_PI); names of one or two letters are free.
  if (identifier.size() > 2 && absl::ascii_isupper(identifier[0])) return true;
  auto taken = [](std::string_view word) {
    return kTaken.find(" " + std::string(word) + " ") != std::string_view::npos;
  };
  return identifier.starts_with('_') || FindHelper(identifier) || taken(identifier) ||
         (identifier.ends_with('f') && taken(identifier.substr(0, identifier.size() - 1)));
}

std::string Prelude(std::string_view body, bool wide) {
  std::string out = R"(#include <math.h>
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

)";
  std::vector<std::string> done;
  AppendHelpers(body, wide, done, out);
  return out;
}

}  // namespace quern::c
