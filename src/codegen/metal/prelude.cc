// The helper functions of emitted MSL, templates over dtypes. In their text:
//   $D name of the dtype   $T its type   $U unsigned type to compute in   $W width in bits
//   $L, $H least and greatest value   $l, $h the floats at or below $L and above $H
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/dtype.h"
#include "codegen/metal/emitter.h"

namespace quern::metal {
namespace {

enum class Over : uint8_t { kNone, kSigned, kUnsigned, kInteger };

struct Helper {
  const char* name;  // without its "_<dtype>"
  Over over;
  const char* text;
};

constexpr Helper kHelpers[] = {
    {"inside", Over::kNone, "bool inside(long i, long size) { return ulong(i) < ulong(size); }"},

    // Integers: two's complement, no undefined overflow.
    {"neg", Over::kInteger, "$T neg_$D($T a) { return $T($U(0) - $U(a)); }"},
    {"abs", Over::kSigned, "$T abs_$D($T a) { return a < 0 ? $T($U(0) - $U(a)) : a; }"},
    {"abs", Over::kUnsigned, "$T abs_$D($T a) { return a; }"},
    {"not", Over::kInteger, "$T not_$D($T a) { return $T(~a); }"},
    {"add", Over::kInteger, "$T add_$D($T a, $T b) { return $T($U(a) + $U(b)); }"},
    {"sub", Over::kInteger, "$T sub_$D($T a, $T b) { return $T($U(a) - $U(b)); }"},
    {"mul", Over::kInteger, "$T mul_$D($T a, $T b) { return $T($U(a) * $U(b)); }"},
    {"div", Over::kSigned, "$T div_$D($T a, $T b) { return b == 0 ? $T(0) : b == -1 ? $T($U(0) - $U(a)) : $T(a / b); }"},
    {"div", Over::kUnsigned, "$T div_$D($T a, $T b) { return b == 0 ? $T(0) : $T(a / b); }"},
    {"mod", Over::kSigned, R"($T mod_$D($T a, $T b) {  // the sign of b
  if (b == 0 || b == -1) return 0;
  const $T rest = $T(a % b);
  return rest != 0 && (rest < 0) != (b < 0) ? $T(rest + b) : rest;
})"},
    {"mod", Over::kUnsigned, "$T mod_$D($T a, $T b) { return b == 0 ? $T(0) : $T(a % b); }"},
    {"min", Over::kInteger, "$T min_$D($T a, $T b) { return b < a ? b : a; }"},
    {"max", Over::kInteger, "$T max_$D($T a, $T b) { return a < b ? b : a; }"},
    {"shl", Over::kSigned, "$T shl_$D($T a, $T n) { return n < 0 || n >= $W ? $T(0) : $T($U(a) << n); }"},
    {"shl", Over::kUnsigned, "$T shl_$D($T a, $T n) { return n >= $W ? $T(0) : $T($U(a) << n); }"},
    {"shr", Over::kSigned, R"($T shr_$D($T a, $T n) {  // with the sign, also where the count is out of range
  return $T(a >> (n < 0 || n >= $W ? $T($W - 1) : n));
})"},
    {"shr", Over::kUnsigned, "$T shr_$D($T a, $T n) { return n >= $W ? $T(0) : $T(a >> n); }"},
    {"saturate", Over::kInteger, R"($T saturate_$D(float x) {  // toward zero; NaN gives 0
  if (x != x) return 0;
  if (x <= $l) return $L;
  return x >= $h ? $H : $T(x);
})"},

    // Floats
    {"mod_f32", Over::kNone, R"(float mod_f32(float a, float b) {  // the sign of b
  const float rest = precise::fmod(a, b);
  return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
})"},
    {"min_f32", Over::kNone, "float min_f32(float a, float b) { return a != a ? a : b != b ? b : b < a ? b : a; }"},
    {"max_f32", Over::kNone, "float max_f32(float a, float b) { return a != a ? a : b != b ? b : a < b ? b : a; }"},
    {"rsqrt_f32", Over::kNone, "float rsqrt_f32(float x) { return 1.0f / precise::sqrt(x); }"},
    {"sigmoid_f32", Over::kNone, "float sigmoid_f32(float x) { return 1.0f / (1.0f + precise::exp(-x)); }"},
    {"erf_f32", Over::kNone, R"(float erf_f32(float x) {
  const float size = fabs(x);
  if (x != x) return x;
  if (size < 1.0f) {  // an odd polynomial, in powers of x x - 1/2
    const float s = fma(x, x, -0.5f);
    float p = fma(8.01595888e-05f, s, -5.65641094e-04f);
    p = fma(p, s, 3.47970054e-03f), p = fma(p, s, -1.82832759e-02f), p = fma(p, s, 7.94100314e-02f);
    p = fma(p, s, -2.81072199e-01f), p = fma(p, s, -3.45312618e-02f);
    return fma(p, x, x);
  }
  const float s = (size < 4.0f ? size : 4.0f) - 1.0f;  // beyond 4 the result is 1
  float q = fma(2.47777109e-07f, s, 2.01703588e-05f);
  q = fma(q, s, -2.85936723e-04f), q = fma(q, s, 2.00778479e-03f), q = fma(q, s, -1.00439461e-02f), q = fma(q, s, 4.15627509e-02f);
  q = fma(q, s, 8.43107164e-01f), q = fma(q, s, 2.63896751f), q = fma(q, s, 1.84960556f);
  const float far = 1.0f - precise::exp(-q);
  return x < 0.0f ? -far : far;
})"},

    // Conversions. The compiler's own from integers may round toward zero.
    {"float_u64", Over::kNone, R"(float float_u64(ulong x) {
  const int shift = width_u64(x) - 24;
  if (shift <= 0) return float(uint(x));
  const ulong rest = x & ((1UL << shift) - 1UL), half_unit = 1UL << (shift - 1);
  uint units = uint(x >> shift);
  units += rest > half_unit || (rest == half_unit && (units & 1U) != 0U) ? 1U : 0U;
  return float(units) * from_bits_f32(uint(127 + shift) << 23);
})"},
    {"float_i64", Over::kNone,
     "float float_i64(long x) { return x < 0 ? -float_u64(0UL - ulong(x)) : float_u64(ulong(x)); }"},
    {"odd_u64", Over::kNone, R"(float odd_u64(ulong x) {  // what is lost sets the last bit
  const int shift = width_u64(x) - 24;
  if (shift <= 0) return float(uint(x));
  const uint lost = (x & ((1UL << shift) - 1UL)) != 0UL ? 1U : 0U;
  return float(uint(x >> shift) | lost) * from_bits_f32(uint(127 + shift) << 23);
})"},
    {"odd_i64", Over::kNone, "float odd_i64(long x) { return x < 0 ? -odd_u64(0UL - ulong(x)) : odd_u64(ulong(x)); }"},
    {"width_u64", Over::kNone, R"(int width_u64(ulong x) {  // bits up to the highest that is set
  const uint high = uint(x >> 32);
  return high != 0U ? 64 - int(clz(high)) : 32 - int(clz(uint(x)));
})"},
    {"round_f16", Over::kNone, "float round_f16(float x) { return float(half(x)); }"},
    {"round_bf16", Over::kNone, "float round_bf16(float x) { return from_bits_bf16(bits_of_bf16(x)); }"},
    {"to_bf16", Over::kNone, "bfloat to_bf16(float x) { return as_type<bfloat>(bits_of_bf16(x)); }"},
    {"bits_of_f32", Over::kNone, "uint bits_of_f32(float x) { return as_type<uint>(x); }"},
    {"bits_of_f16", Over::kNone, "ushort bits_of_f16(float x) { return as_type<ushort>(half(x)); }"},
    {"bits_of_bf16", Over::kNone, R"(ushort bits_of_bf16(float x) {  // to the nearest, halves to even
  const uint bits = as_type<uint>(x);
  return ushort((x != x ? bits | 0x400000U : bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
})"},
    {"from_bits_f32", Over::kNone, "float from_bits_f32(uint bits) { return as_type<float>(bits); }"},
    {"from_bits_f16", Over::kNone, "float from_bits_f16(ushort bits) { return float(as_type<half>(bits)); }"},
    {"from_bits_bf16", Over::kNone, "float from_bits_bf16(ushort bits) { return as_type<float>(uint(bits) << 16); }"},

    // Block formats as in a GGUF file: element j of a row. The blocks have an even number of bytes.
    {"read_half", Over::kNone, "float read_half(device const uchar* at) { return float(*(device const half*)at); }"},
    {"decode_q4_0", Over::kNone, R"(float decode_q4_0(device const uchar* row, uint j) {  // f16 d, 16 bytes of nibbles
  device const uchar* const block = row + j / 32U * 18U;
  const int byte = block[2U + j % 16U];
  return float((byte >> (j / 16U % 2U * 4U) & 15) - 8) * read_half(block);
})"},
    {"decode_q8_0", Over::kNone, R"(float decode_q8_0(device const uchar* row, uint j) {  // f16 d, 32 chars
  device const uchar* const block = row + j / 32U * 34U;
  return float(as_type<char>(block[2U + j % 32U])) * read_half(block);
})"},
    {"six_bits", Over::kNone, R"(float six_bits(device const uchar* block, int code, uint sub) {
  // f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums of 8 sub-blocks
  device const uchar* const packed = block + 4;
  const int first = packed[sub], second = packed[sub + 4U], high = packed[sub % 4U] >> 6;
  const int late = -int(sub / 4U);  // all bits for the last four; branches would keep neighbours from sharing the loads
  const int scale = (first & 63 & ~late) | (((second & 15) | high << 4) & late);
  const int minimum = (second & 63 & ~late) | ((second >> 4 | first >> 6 << 4) & late);
  const float product = read_half(block) * float(scale) * float(code), lowest = read_half(block + 2) * float(minimum);
  return product - lowest;
})"},
    {"decode_q4_K", Over::kNone, R"(float decode_q4_K(device const uchar* row, uint j) {
  // 4 chunks of 32 bytes: nibbles of two sub-blocks of 32 in each
  device const uchar* const block = row + j / 256U * 144U;
  const uint sub = j / 32U % 8U;
  const int byte = block[16U + sub / 2U * 32U + j % 32U];
  return six_bits(block, byte >> (sub % 2U * 4U) & 15, sub);
})"},
    {"decode_q5_K", Over::kNone, R"(float decode_q5_K(device const uchar* row, uint j) {
  // as q4_K, with 32 bytes of fifth bits before the nibbles: bit i for sub-block i
  device const uchar* const block = row + j / 256U * 176U;
  const uint sub = j / 32U % 8U;
  const int byte = block[48U + sub / 2U * 32U + j % 32U], fifth = block[16U + j % 32U] >> sub & 1;
  return six_bits(block, (byte >> (sub % 2U * 4U) & 15) | fifth << 4, sub);
})"},
    {"decode_q6_K", Over::kNone, R"(float decode_q6_K(device const uchar* row, uint j) {
  // low nibbles [128], high pairs of bits [64], 16 scales of a char, f16 d; each half of 128 is four streams of 32
  device const uchar* const block = row + j / 256U * 210U;
  const uint part = j / 128U % 2U, stream = j / 32U % 4U, lane = j % 32U;
  const int low = block[part * 64U + stream % 2U * 32U + lane] >> (stream / 2U * 4U) & 15;
  const int high = block[128U + part * 32U + lane] >> (stream * 2U) & 3;
  const float scale = read_half(block + 208) * float(as_type<char>(block[192U + j / 16U % 16U]));
  return scale * float((low | high << 4) - 32);
})"},
    {"decode_q8_K", Over::kNone, R"(float decode_q8_K(device const uchar* row, uint j) {  // f32 d, 256 chars, 16 sums
  device const uchar* const block = row + j / 256U * 292U;
  return *(device const float*)block * float(as_type<char>(block[4U + j % 256U]));
})"},
};

// Keywords, types, and the functions that the text calls.
constexpr std::string_view kTaken =
    " alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr continue decltype default delete "
    "do double else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "nullptr operator or private protected public register return short signed sizeof static struct switch template this throw true "
    "try typedef typeid typename union unsigned using virtual void volatile while xor int8_t uint8_t int16_t uint16_t int32_t uint32_t "
    "int64_t uint64_t size_t ptrdiff_t kernel vertex fragment device constant thread threadgroup threadgroup_imageblock ray_data "
    "object_data half bfloat uchar ushort uint ulong metal precise fast mem_flags as_type fabs floor ceil trunc rint fma clz "
    "threadgroup_barrier simdgroup_barrier simd_shuffle simd_shuffle_xor simdgroup_load simdgroup_store simdgroup_multiply_accumulate "
    "make_filled_simdgroup_matrix simdgroup_float8x8 simdgroup_half8x8 simdgroup_bfloat8x8 main sampler texture assert ";

// float4, half8x8 and the like.
bool IsVectorType(std::string_view word) {
  for (const char* scalar : {"bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "half", "bfloat"}) {
    if (word.starts_with(scalar) && word.size() == std::string_view(scalar).size() + 1 && absl::ascii_isdigit(word.back())) return true;
  }
  return false;
}

bool Applies(Over over, DType dtype) {
  switch (over) {
    case Over::kNone: return false;
    case Over::kSigned: return IsInteger(dtype) && !IsUnsigned(dtype);
    case Over::kUnsigned: return IsUnsigned(dtype);
    case Over::kInteger: return IsInteger(dtype);
  }
  return false;
}

// The helper of that name and the dtype it is for (any, where it is for none).
std::optional<std::pair<const Helper*, DType>> FindHelper(std::string_view name) {
  for (const Helper& helper : kHelpers) {
    if (helper.over == Over::kNone && name == helper.name) return std::pair(&helper, DType::kI32);
  }
  for (const Helper& helper : kHelpers) {
    const std::string_view stem = helper.name;
    if (name.size() <= stem.size() + 1 || !name.starts_with(stem) || name[stem.size()] != '_') continue;
    const std::optional<DType> dtype = DTypeFromName(name.substr(stem.size() + 1));
    if (dtype && Applies(helper.over, *dtype)) return std::pair(&helper, *dtype);
  }
  return std::nullopt;
}

// The least and greatest value of an integer, and the powers of two that bound it as floats.
struct Limits { std::string least, most, low, high; };
Limits LimitsOf(DType dtype) {
  const int bits = 8 * ScalarBytes(dtype), value_bits = IsUnsigned(dtype) ? bits : bits - 1;
  const uint64_t most = bits == 64 && IsUnsigned(dtype) ? UINT64_MAX : (uint64_t{1} << value_bits) - 1;
  const std::string suffix = absl::StrCat(IsUnsigned(dtype) ? "U" : "", bits == 64 ? "L" : "");
  Limits limits;
  limits.most = absl::StrCat(most, suffix);
  limits.least = IsUnsigned(dtype) ? "0" : absl::StrCat("(-", most, suffix, " - 1)");
  limits.low = IsUnsigned(dtype) ? "0.0f" : absl::StrFormat("-%.1ff", std::ldexp(1.0, value_bits));
  limits.high = absl::StrFormat("%.1ff", std::ldexp(1.0, value_bits));
  return limits;
}

std::string Expand(const Helper& helper, DType dtype) {
  const Limits limits = LimitsOf(dtype);
  const std::string text = absl::StrReplaceAll(helper.text, {{"$D", Row(dtype).name},
                                                             {"$T", MemoryType(dtype)},
                                                             {"$U", ScalarBytes(dtype) == 8 ? "ulong" : "uint"},
                                                             {"$W", absl::StrCat(8 * ScalarBytes(dtype))},
                                                             {"$L", limits.least},
                                                             {"$H", limits.most},
                                                             {"$l", limits.low},
                                                             {"$h", limits.high}});
  return absl::StrCat("static inline ", text, "\n");
}

// Appends the helpers that `text` names, those they need first.
void AppendHelpers(std::string_view text, std::vector<std::string>& done, std::string& out) {
  auto is_word = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word(text.substr(at, end - at));
    at = std::max(end, at + 1);
    const auto found = FindHelper(word);
    if (!found || std::find(done.begin(), done.end(), word) != done.end()) continue;
    done.push_back(word);
    const std::string helper = Expand(*found->first, found->second);
    AppendHelpers(helper, done, out);
    out += helper;
  }
}

constexpr const char* kMemoryTypes[] = {"float", "half", "bfloat", "double", "char", "short", "int", "long",
                                        "uchar", "ushort", "uint", "ulong", "uchar"};

}  // namespace

const char* MemoryType(DType dtype) {
  const auto at = static_cast<size_t>(dtype);
  return at < std::size(kMemoryTypes) ? kMemoryTypes[at] : "uchar";  // blocks are bytes
}

bool Reserved(std::string_view identifier) {
  // The library defines macros with capitals (INFINITY, M_PI_F); names of one or two letters are free.
  if (identifier.size() > 2 && absl::ascii_isupper(identifier[0])) return true;
  return identifier.starts_with('_') || FindHelper(identifier) || IsVectorType(identifier) ||
         kTaken.find(absl::StrCat(" ", std::string(identifier), " ")) != std::string_view::npos;
}

std::string Prelude(std::string_view body) {
  std::string out = R"(// Compile as Metal 3.1 or later, with fast math off.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma clang fp contract(off)
#endif
using namespace metal;

)";
  std::vector<std::string> done;
  AppendHelpers(body, done, out);
  return out;
}

}  // namespace quern::metal
