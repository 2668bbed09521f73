// The frame of the qk_dot_q* tiles: m rows of activations, a few at a time.
#pragma once

#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

// Rows of activations that are multiplied by one decoded block: their accumulators have to stay in registers.
constexpr int kDotRows = kRegisters == 32 ? 8 : 4;

// From so many rows on it is less to pack 16 rows of weights as a panel than to add up lanes for each row of both; 0:
// never. Measured with AVX-512, where one number does, and with AVX2, from memory.
template <class Format>
constexpr int64_t LeastPanelRows() {
  return kBytes == 64 ? 3 : kBytes == 32 ? Format::kPanelRows : 0;
}

// The operands of a call, typed.
struct DotCall {
  float* y;
  int64_t y_ld;
  const uint8_t* w;
  int64_t w_stride;
  const uint8_t* x;
  int64_t x_stride;
  int64_t n, k, ahead;
};

// Fetches the kBlockBytes that lie `ahead` bytes after `at`, in two stages: far ahead into L2, which has room for as
// many lines in flight as memory needs, then into L1 from there. One far fetch straight into L1 runs out of fill
// buffers: 86% of a read loop instead of 92%, on a machine with 12 GB/s a core.
template <int kBlockBytes>
HWY_INLINE void PrefetchAhead(const uint8_t* at, int64_t ahead) {
  constexpr int kNear = 1024;
  for (int line = 0; line < kBlockBytes; line += 64) {
    __builtin_prefetch(at + ahead + line, 0, 2);
    __builtin_prefetch(at + kNear + line, 0, 3);
  }
}

// Rows of weights that a single row of activations is multiplied with at once. Memory gives more to several streams
// than to one: 16.3 GB/s against 15.6 on a core where a plain read loop has 15.
constexpr int kDotStreams = 4;

// How far ahead each stream fetches: at least call.ahead, and where the same stream comes to next.
template <int kStreams>
HWY_INLINE int64_t AheadOf(const DotCall& call) {
  if (kStreams == 1) return call.ahead;
  const int64_t group = kStreams * call.w_stride;
  return (call.ahead + group - 1) / group * group;
}

// A few rows by panels (quant_few.h): the tile of a format.
using FewTile = void(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                     int64_t m, int64_t n, int64_t k, int64_t ahead);

// Whether it multiplies m rows; not where a row has the same bits however `many` there are: those of panels are others.
template <class Format>
HWY_INLINE bool ByPanels(int64_t m, int64_t n, int64_t many) {
  constexpr int64_t kLeast = LeastPanelRows<Format>();
  return kLeast != 0 && m >= kLeast && n >= 16 && many == 0;
}

// Calls f.operator()<rows>(call) for groups of at most kMost of the m rows.
template <int kMost = kDotRows, class F>
HWY_INLINE void ForDotRows(DotCall call, int64_t m, const F& f) {
  while (m > 0) {
    const int64_t take = m < kMost ? m : kMost;
    DispatchRows<kMost>(take, [&]<int M>() { f.template operator()<M>(call); });
    m -= take;
    call.y += take * call.y_ld;
    call.x += take * call.x_stride;
  }
}

}  // namespace
}  // namespace quern::simd

// What follows QUERN_TILE(qk_dot_F), by the Dot of the file that says it.
#define QUERN_DOT(Format, name)                                                                                    \
  (float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride, int64_t m, int64_t n, \
   int64_t k, int64_t ahead, int64_t many) {                                                                       \
    quern::simd::Dot<quern::simd::Format>(y, y_ld, w, w_stride, x, x_stride, m, n, k, ahead, many,                 \
                                          QUERN_NAME(qk_few_##name));                                              \
  }
