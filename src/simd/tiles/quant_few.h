// A few rows of activations by panels: 16 rows of weights are packed for a slab of k, which the first cache keeps, and
// multiplied with all of them as the qk_mma_q* tiles do. Each row costs a third of what it does where the lanes of its
// sums are added up (qk_dot_q*), and packing as much as two of them.
//
//   for 16 rows of weights, for 256 or 512 elements of k:  pack a panel;  y[m, 16] += x (planar) * panel^T
//
// What is read next is asked for a panel ahead, as the work goes on: memory is nearly as busy as with one row.
#pragma once

#include "simd/tiles/quant_dot.h"
#include "simd/tiles/quant_mma.h"

namespace quern::simd {
namespace {

using PackTile = void(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k);
using DotTile = void(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                     int64_t m, int64_t n, int64_t k, int64_t ahead, int64_t many);

// Whether the products ask for what is packed next, one row after the other: with AVX2, where packing is much of the
// work. Elsewhere that is asked for in halves, before a panel is packed and after it.
constexpr bool kProductsAsk = kBytes == 32;

// Elements of k of a slab, at most 512, and bytes of a row of weights for as many.
struct Slab {
  int64_t depth, row_bytes;
};
template <class Format>
constexpr Slab SlabOf(int64_t blocks) {
  return {blocks * Format::kElements, blocks * Format::kBytes};
}
template <class Format>
constexpr Slab kSlab = SlabOf<Format>(Format::kElements == 256 ? 1
                                      : kProductsAsk           ? 16
                                                               : 4);

// Asks for `rows` rows of a slab.
HWY_INLINE void FetchRows(const uint8_t* at, int64_t stride, int64_t bytes, int64_t rows) {
#pragma clang loop unroll(disable)
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + r * stride + line, 0, 2);
  }
}

// What the products of some rows of activations ask for: nothing, or the slab ahead, row by row. A burst would be
// waited for.
struct NothingAhead {
  HWY_INLINE NothingAhead(const uint8_t*, int64_t) {}
  template <class Format>
  HWY_INLINE void Fetch(int64_t) {}
};
struct SlabAhead {
  const uint8_t* row;
  int64_t stride;
  HWY_INLINE SlabAhead(const uint8_t* first, int64_t w_stride) : row(first), stride(w_stride) {}
  template <class Format>
  HWY_INLINE void Fetch(int64_t rows) {
    FetchRows(row, stride, kSlab<Format>.row_bytes, rows);
    row += rows * stride;
  }
};

// Columns [j, j + n) of a call, of elements [first, first + k) of its k: those of a panel.
struct PanelPart {
  const uint8_t* codes;
  int64_t j, n, first, k;
  const uint8_t* ahead = nullptr;  // the slab that the products ask for, or none
};
using MultiplyPart = void(const DotCall& call, int64_t m, const PanelPart& part);

// Most rows of a block: of a few rows only, where tile registers take the others.
#if defined(__AMX_INT8__)
constexpr int kMostRows = 8;
#else
constexpr int kMostRows = kMmaRows;
#endif

// Cuts the m rows of activations of a product with a panel into blocks and calls f.operator()<rows, Ahead>(first_row):
// the first block asks for the slab ahead, where there is one.
template <class F>
HWY_INLINE void ForPanelRows(int64_t m, const PanelPart& part, const F& f) {
  ForRowBlocks<kMostRows>(m, [&]<int M>(int64_t row) {
    if constexpr (kProductsAsk && M > 1) {
      if (row == 0 && part.ahead != nullptr) return f.template operator()<M, SlabAhead>(row);
    }
    f.template operator()<M, NothingAhead>(row);
  });
}

// The walk of all formats, by the pack and the products of one. Rows of weights that fill no panel are left
// to `dot`.
[[maybe_unused]] HWY_NOINLINE __attribute__((noduplicate)) void FewBySlabs(const DotCall& call, int64_t m, Slab slab,
                                                                           PackTile* pack, MultiplyPart* multiply,
                                                                           DotTile* dot) {
  // Codes of 16 rows, for each of up to 16 groups a scale of four bytes and as much for minimums or what is added, and
  // two more.
  alignas(64) uint8_t panel[512 * 16 + 16 * 16 * (4 + 4) + 2 * 64];
  const int64_t ahead = AheadOf<16>(call);
  const uint8_t* rows = call.w;
  int64_t j = 0;
  for (; j + 16 <= call.n; j += 16, rows += 16 * call.w_stride) {
    const uint8_t* at = rows;
    for (int64_t first = 0; first < call.k; first += slab.depth, at += slab.row_bytes) {
      const int64_t k = call.k - first < slab.depth ? call.k - first : slab.depth;
      const uint8_t* const next = at + ahead;
      if (!kProductsAsk) FetchRows(next, call.w_stride, slab.row_bytes, 8);
      pack(panel, 0, at, call.w_stride, 16, k);
      if (!kProductsAsk) FetchRows(next + 8 * call.w_stride, call.w_stride, slab.row_bytes, 8);
      multiply(call, m, {panel, j, 16, first, k, kProductsAsk ? next : nullptr});
    }
  }
  if (j < call.n)
    dot(call.y + j, call.y_ld, rows, call.w_stride, call.x, call.x_stride, m, call.n - j, call.k, call.ahead, 1);
}

}  // namespace
}  // namespace quern::simd

// What follows QUERN_TILE(qk_mma_F), by the Mma of the file that says it.
#define QUERN_MMA(Format)                                                                                     \
  (float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m, int64_t n, \
   int64_t k) {                                                                                               \
    quern::simd::Mma<quern::simd::Format>(c, c_ld, x, x_stride, panel, m, n, k);                              \
  }

// A few rows are multiplied by plain panels, as the pack of a level makes them. That of AMX makes others, which take
// more to pack or have codes that vectors do not multiply.
#if defined(__AMX_INT8__)
#define QUERN_PLAIN_PACK(Format, name)                                                       \
  [](void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t depth) { \
    quern::simd::PackPanel<quern::simd::Format>(dst, src, src_stride, rows, depth);          \
  }
#else
#define QUERN_PLAIN_PACK(Format, name) QUERN_NAME(qk_pack_##name##_panel16)
#endif
// What follows QUERN_TILE(qk_few_F), by the MultiplyPanel of the file that says it.
#define QUERN_FEW(Format, name)                                                                                        \
  (float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride, int64_t m, int64_t n,     \
   int64_t k, int64_t ahead) {                                                                                         \
    quern::simd::FewBySlabs(                                                                                           \
        {y, y_ld, static_cast<const uint8_t*>(w), w_stride, static_cast<const uint8_t*>(x), x_stride, n, k, ahead}, m, \
        quern::simd::kSlab<quern::simd::Format>, QUERN_PLAIN_PACK(Format, name),                                       \
        quern::simd::MultiplyPanel<quern::simd::Format>, QUERN_NAME(qk_dot_##name));                                   \
  }
