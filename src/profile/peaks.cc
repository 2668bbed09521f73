#include "profile/peaks.h"

#include <algorithm>
#include <iterator>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__clang__)
#define QUERN_UNROLL_ALL _Pragma("clang loop unroll(full)")
#else
#define QUERN_UNROLL_ALL _Pragma("GCC unroll 16")
#endif

namespace quern::profile {
namespace {

// Enough chains to fill two units of a latency of five; as many registers as there are, less the operands.
constexpr int kChains = 12;

#if defined(__x86_64__)

// Keeps a vector in a register and the compiler from seeing through it.
#define QUERN_OPAQUE(v) asm volatile("" : "+v"(v))

__attribute__((target("sse4.2"))) uint64_t Read128(const void* data, int64_t bytes) {
  const char* p = static_cast<const char*>(data);
  __m128i sum[8] = {};
  for (int64_t at = 0; at < bytes; at += 128) {
    _mm_prefetch(p + at + 8192, _MM_HINT_T0);
    _mm_prefetch(p + at + 8192 + 64, _MM_HINT_T0);
    QUERN_UNROLL_ALL
    for (int i = 0; i < 8; ++i)
      sum[i] = _mm_add_epi64(sum[i], _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at + 16 * i)));
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm_add_epi64(sum[0], sum[i]);
  return static_cast<uint64_t>(_mm_extract_epi64(sum[0], 0));
}

__attribute__((target("avx2"))) uint64_t Read256(const void* data, int64_t bytes) {
  const char* p = static_cast<const char*>(data);
  __m256i sum[8] = {};
  for (int64_t at = 0; at < bytes; at += 256) {
    QUERN_UNROLL_ALL
    for (int i = 0; i < 8; ++i) {
      if (i % 2 == 0) _mm_prefetch(p + at + 8192 + 32 * i, _MM_HINT_T0);
      sum[i] = _mm256_add_epi64(sum[i], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + at + 32 * i)));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm256_add_epi64(sum[0], sum[i]);
  return static_cast<uint64_t>(_mm256_extract_epi64(sum[0], 0));
}

__attribute__((target("avx512f"))) uint64_t Read512(const void* data, int64_t bytes) {
  const char* p = static_cast<const char*>(data);
  __m512i sum[8] = {};
  for (int64_t at = 0; at < bytes; at += 512) {
    QUERN_UNROLL_ALL
    for (int i = 0; i < 8; ++i) {
      _mm_prefetch(p + at + 8192 + 64 * i, _MM_HINT_T0);
      sum[i] = _mm512_add_epi64(sum[i], _mm512_loadu_si512(p + at + 64 * i));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm512_add_epi64(sum[0], sum[i]);
  return static_cast<uint64_t>(_mm512_reduce_add_epi64(sum[0]));
}

// One loop of kChains accumulators a; `step` updates a[i].
#define QUERN_PEAK(name, features, vector, zero, operations, setup, step) \
  __attribute__((target(features))) int64_t name(int64_t steps) {         \
    vector a[kChains];                                                    \
    for (int i = 0; i < kChains; ++i) a[i] = zero;                        \
    setup;                                                                \
    for (int64_t s = 0; s < steps; ++s) {                                 \
      QUERN_UNROLL_ALL                                                    \
      for (int i = 0; i < kChains; ++i) {                                 \
        step;                                                             \
        QUERN_OPAQUE(a[i]);                                               \
      }                                                                   \
    }                                                                     \
    return kChains * (operations);                                        \
  }

QUERN_PEAK(Float128, "sse4.2", __m128, _mm_setzero_ps(), 8, __m128 b = _mm_set1_ps(0.5f);
           QUERN_OPAQUE(b), a[i] = _mm_add_ps(_mm_mul_ps(a[i], b), b))
QUERN_PEAK(Float256, "avx2,fma", __m256, _mm256_setzero_ps(), 16, __m256 b = _mm256_set1_ps(0.5f);
           QUERN_OPAQUE(b), a[i] = _mm256_fmadd_ps(a[i], b, b))
QUERN_PEAK(Float512, "avx512f", __m512, _mm512_setzero_ps(), 32, __m512 b = _mm512_set1_ps(0.5f);
           QUERN_OPAQUE(b), a[i] = _mm512_fmadd_ps(a[i], b, b))

// Without a byte dot product: products of bytes in pairs, of pairs in fours, and the sum.
QUERN_PEAK(Byte128, "sse4.2", __m128i, _mm_setzero_si128(), 32, __m128i b = _mm_set1_epi8(3);
           __m128i ones = _mm_set1_epi16(1); QUERN_OPAQUE(ones), QUERN_OPAQUE(b);
           a[i] = _mm_add_epi32(a[i], _mm_madd_epi16(_mm_maddubs_epi16(b, b), ones)))
QUERN_PEAK(Byte256, "avx2", __m256i, _mm256_setzero_si256(), 64, __m256i b = _mm256_set1_epi8(3);
           __m256i ones = _mm256_set1_epi16(1); QUERN_OPAQUE(ones), QUERN_OPAQUE(b);
           a[i] = _mm256_add_epi32(a[i], _mm256_madd_epi16(_mm256_maddubs_epi16(b, b), ones)))
QUERN_PEAK(Byte512, "avx512f,avx512bw", __m512i, _mm512_setzero_si512(), 128, __m512i b = _mm512_set1_epi8(3);
           __m512i ones = _mm512_set1_epi16(1); QUERN_OPAQUE(ones), QUERN_OPAQUE(b);
           a[i] = _mm512_add_epi32(a[i], _mm512_madd_epi16(_mm512_maddubs_epi16(b, b), ones)))
QUERN_PEAK(ByteDot512, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(), 128, __m512i b = _mm512_set1_epi8(3);
           QUERN_OPAQUE(b), a[i] = _mm512_dpbusd_epi32(a[i], b, b))

QUERN_PEAK(Pairs512, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(), 64, __m512 b = _mm512_set1_ps(0.5f);
           QUERN_OPAQUE(b), a[i] = _mm512_dpbf16_ps(a[i], reinterpret_cast<__m512bh>(b), reinterpret_cast<__m512bh>(b)))

// Four sums of 16 x 16, so that each may take as long as four products. Zeros take less power, and so less time.
#define QUERN_PEAK_OF_TILES(name, features, operations, multiply)                                          \
  __attribute__((target(features))) int64_t name(int64_t steps) {                                          \
    struct alignas(64) {                                                                                   \
      uint8_t palette = 1, start_row = 0, reserved[14] = {};                                               \
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};                                           \
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};                                                 \
    } config;                                                                                              \
    alignas(64) uint8_t data[16][64];                                                                      \
    for (int i = 0; i < 16 * 64; ++i) data[i / 64][i % 64] = static_cast<uint8_t>(i % 2 ? 0x3f : i % 251); \
    _tile_loadconfig(&config);                                                                             \
    _tile_zero(0);                                                                                         \
    _tile_zero(1);                                                                                         \
    _tile_zero(2);                                                                                         \
    _tile_zero(3);                                                                                         \
    _tile_loadd(4, data, 64);                                                                              \
    _tile_loadd(5, data, 64);                                                                              \
    _tile_loadd(6, data, 64);                                                                              \
    _tile_loadd(7, data, 64);                                                                              \
    for (int64_t s = 0; s < steps; ++s) {                                                                  \
      multiply(0, 4, 6);                                                                                   \
      multiply(1, 4, 7);                                                                                   \
      multiply(2, 5, 6);                                                                                   \
      multiply(3, 5, 7);                                                                                   \
    }                                                                                                      \
    _tile_release();                                                                                       \
    return int64_t{4} * 16 * 16 * (operations);                                                            \
  }

QUERN_PEAK_OF_TILES(ByteTile, "amx-tile,amx-int8", 128, _tile_dpbusd)
QUERN_PEAK_OF_TILES(PairTile, "amx-tile,amx-bf16", 64, _tile_dpbf16ps)

constexpr PeakLoops kLoops[] = {
    {"sse4", Read128, Float128, Float128, Byte128},   {"avx2", Read256, Float256, Float256, Byte256},
    {"avx512", Read512, Float512, Float512, Byte512}, {"avx512vnni", Read512, Float512, Pairs512, ByteDot512},
    {"amx", Read512, Float512, PairTile, ByteTile},
};

#elif defined(__aarch64__)

uint64_t Read128(const void* data, int64_t bytes) {
  const auto* p = static_cast<const uint64_t*>(data);
  uint64x2_t sum[8] = {};
  for (int64_t at = 0; at < bytes / 8; at += 16) {
    __builtin_prefetch(p + at + 1024);
    __builtin_prefetch(p + at + 1032);
    for (int i = 0; i < 8; ++i) sum[i] = vaddq_u64(sum[i], vld1q_u64(p + at + 2 * i));
  }
  for (int i = 1; i < 8; ++i) sum[0] = vaddq_u64(sum[0], sum[i]);
  return vaddvq_u64(sum[0]);
}

int64_t Float128(int64_t steps) {
  float32x4_t a[kChains] = {}, b = vdupq_n_f32(0.5f);
  for (int64_t s = 0; s < steps; ++s) {
    QUERN_UNROLL_ALL
    for (int i = 0; i < kChains; ++i) {
      a[i] = vfmaq_f32(b, a[i], b);
      asm volatile("" : "+w"(a[i]));
    }
  }
  return kChains * 8;
}

int64_t Byte128(int64_t steps) {
  int32x4_t a[kChains] = {};
  int8x16_t b = vdupq_n_s8(3);
  for (int64_t s = 0; s < steps; ++s) {
    QUERN_UNROLL_ALL
    for (int i = 0; i < kChains; ++i) {
      asm volatile("" : "+w"(b));
      a[i] = vpadalq_s16(a[i], vmlal_high_s8(vmull_s8(vget_low_s8(b), vget_low_s8(b)), b, b));
      asm volatile("" : "+w"(a[i]));
    }
  }
  return kChains * 32;
}

constexpr PeakLoops kLoops[] = {{"neon", Read128, Float128, Float128, Byte128}};

#endif

}  // namespace

const PeakLoops& PeaksOf(std::string_view level) {
  const auto* found =
      std::find_if(std::begin(kLoops), std::end(kLoops), [&](const PeakLoops& loops) { return loops.level == level; });
  return found == std::end(kLoops) ? kLoops[0] : *found;  // a level that is new here: the least has no more than it
}

}  // namespace quern::profile
