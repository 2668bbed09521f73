// A few rows of activations by panels: 16 rows of weights are packed for a slab of k, which the first cache keeps, and
// multiplied with all of them as the qk_mma_q* tiles do. Each row costs a third of what it does where the lanes of its
// sums are added up (qk_dot_q*), and packing as much as two of them.
//
//   for 16 rows of weights, for 256 or 128 elements of k:  pack a panel;  y[m, 16] += x (planar) * panel^T
//
// What is read next is asked for a panel ahead, between the pieces of work: memory is as busy as with one row.
#pragma once

#include "simd/tiles/quant_dot.h"
#include "simd/tiles/quant_mma.h"

namespace quern::simd {
namespace {

using PackTile = void(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k);
using DotTile = void(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                     int64_t m, int64_t n, int64_t k, int64_t ahead, int64_t many);

// Elements of k of a slab, at most 256, and bytes of a row of weights for as many.
struct Slab {
  int64_t depth, row_bytes;
};
template <class Format>
constexpr Slab kSlab = Format::kElements == 256 ? Slab{256, Format::kBytes} : Slab{4 * 32, 4 * Format::kBytes};

// Asks for eight rows of a slab; bursts of more would be waited for.
HWY_INLINE void FetchHalf(const uint8_t* rows, int64_t stride, int64_t bytes) {
#pragma clang loop unroll(disable)
  for (int r = 0; r < 8; ++r) {
    for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(rows + r * stride + line, 0, 2);
  }
}

// Columns [j, j + n) of a call, of elements [first, first + k) of its k: those of a panel.
struct PanelPart {
  const uint8_t* codes;
  int64_t j, n, first, k;
};
using MultiplyPart = void(const DotCall& call, int64_t m, const PanelPart& part);

// The walk of all formats, by the pack and the products of one. Rows of weights that fill no panel are left
// to `dot`.
[[maybe_unused]] HWY_NOINLINE __attribute__((noduplicate)) void FewBySlabs(const DotCall& call, int64_t m, Slab slab,
                                                                           PackTile* pack, MultiplyPart* multiply,
                                                                           DotTile* dot) {
  // Codes of 16 rows, a scale of four bytes for each of up to 16 groups, half as much for minimums, and two more.
  alignas(64) uint8_t panel[256 * 16 + 16 * 16 * (4 + 2) + 2 * 64];
  const int64_t ahead = AheadOf<16>(call);
  const uint8_t* rows = call.w;
  int64_t j = 0;
  for (; j + 16 <= call.n; j += 16, rows += 16 * call.w_stride) {
    const uint8_t* at = rows;
    for (int64_t first = 0; first < call.k; first += slab.depth, at += slab.row_bytes) {
      const int64_t k = call.k - first < slab.depth ? call.k - first : slab.depth;
      FetchHalf(at + ahead, call.w_stride, slab.row_bytes);
      pack(panel, 0, at, call.w_stride, 16, k);
      FetchHalf(at + ahead + 8 * call.w_stride, call.w_stride, slab.row_bytes);
      multiply(call, m, {panel, j, 16, first, k});
    }
  }
  if (j < call.n)
    dot(call.y + j, call.y_ld, rows, call.w_stride, call.x, call.x_stride, m, call.n - j, call.k, call.ahead, 1);
}

}  // namespace
}  // namespace quern::simd

// What follows QUERN_TILE(qk_mma_F) and QUERN_TILE(qk_few_F), by the Mma and Few of the file that says it.
#define QUERN_MMA(Format)                                                                                     \
  (float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m, int64_t n, \
   int64_t k) {                                                                                               \
    quern::simd::Mma<quern::simd::Format>(c, c_ld, x, x_stride, panel, m, n, k);                              \
  }
#define QUERN_FEW(Format, name)                                                                                        \
  (float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride, int64_t m, int64_t n,     \
   int64_t k, int64_t ahead) {                                                                                         \
    quern::simd::Few<quern::simd::Format>(QUERN_NAME(qk_pack_##name##_panel16), QUERN_NAME(qk_dot_##name), y, y_ld, w, \
                                          w_stride, x, x_stride, m, n, k, ahead);                                      \
  }
