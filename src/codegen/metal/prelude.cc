// MSL as a language of codegen/text, and the helper functions that it alone has.
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "codegen/metal/emitter.h"
#include "codegen/text/helpers.h"

namespace quern::metal {
namespace {

using text::Helper, text::Over;

constexpr Helper kHelpers[] = {
    // From the function that loses the last places, and what was lost: both are off by the same factor.
    {"expm1_f32", Over::kNone, R"(float expm1_f32(float x) {
  const float power = precise::exp(x);
  if (power == 1.0f || x != x) return x;
  if (fabs(x) > 1.0f) return power - 1.0f;
  return (power - 1.0f) * (x / precise::log(power));
})"},
    {"log1p_f32", Over::kNone, R"(float log1p_f32(float x) {
  const float sum = 1.0f + x;
  if (sum == 1.0f || x != x) return x;
  if (fabs(x) > 1.0f) return precise::log(sum);
  return precise::log(sum) * (x / (sum - 1.0f));
})"},
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
  q = fma(q, s, -2.85936723e-04f), q = fma(q, s, 2.00778479e-03f), q = fma(q, s, -1.00439461e-02f);
  q = fma(q, s, 4.15627509e-02f), q = fma(q, s, 8.43107164e-01f), q = fma(q, s, 2.63896751f);
  q = fma(q, s, 1.84960556f);
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
    {"read_float", Over::kNone, "float read_float(device const uchar* at) { return *(device const float*)at; }"},
    {"decode", Over::kBlock, R"(float decode_$D(device const uchar* row, uint j) {
  device const uchar* const block = row + j / $BU * $NU;
  const int i = int(j % $BU);
$fields  return value_$D($names);
})"},
};

// Types, and the functions that the text calls.
constexpr std::string_view kTaken =
    " kernel vertex fragment device constant thread threadgroup threadgroup_imageblock ray_data object_data half "
    "bfloat uchar ushort uint "
    "ulong metal precise fast mem_flags as_type fabs floor ceil trunc rint fma clz threadgroup_barrier "
    "simdgroup_barrier simd_shuffle "
    "simd_shuffle_xor simdgroup_load simdgroup_store simdgroup_multiply_accumulate make_filled_simdgroup_matrix "
    "simdgroup_float8x8 "
    "simdgroup_half8x8 simdgroup_bfloat8x8 sampler texture assert ";

// float4, half8x8 and the like.
bool IsVectorType(std::string_view word) {
  for (const char* scalar :
       {"bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "half", "bfloat"}) {
    if (word.starts_with(scalar) && word.size() == std::string_view(scalar).size() + 1 &&
        absl::ascii_isdigit(word.back()))
      return true;
  }
  return false;
}

// precise:: holds where a host compiles with fast math after all.
std::string Function(std::string_view name, DType) {
  for (const char* helper : {"erf", "expm1", "log1p"}) {
    if (name == helper) return absl::StrCat(helper, "_f32");
  }
  for (const char* exact : {"fabs", "floor", "ceil", "trunc", "rint", "fma"}) {
    if (name == exact) return exact;
  }
  return absl::StrCat("precise::", std::string(name));
}

}  // namespace

constexpr text::Language kLanguage = {.name = "Metal",
                                      .types = {"float", "half", "bfloat", "", "char", "short", "int", "long", "uchar",
                                                "ushort", "uint", "ulong", "uchar"},
                                      .function = Function,
                                      .casts_like_calls = true,
                                      .narrows = true,  // GPUs multiply 64-bit numbers slowly
                                      .contracts = true,
                                      .constant = "constant",
                                      .unroll = "#pragma unroll",
                                      .helpers = kHelpers,
                                      .taken = kTaken,
                                      .is_taken = IsVectorType};

std::string Prelude(std::string_view body) {
  return R"(// Compile as Metal 3.1 or later, with fast math off.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma clang fp contract(off)
#endif
using namespace metal;

)" + text::HelpersFor(kLanguage, body);
}

}  // namespace quern::metal
