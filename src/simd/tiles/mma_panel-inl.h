// Rows of x by one panel of 32 columns (kn32), of floats or doubles: what qk_mma_f32 and qk_mma_f64 are.
//
//   c[i, j] += sum_p x[i, p] * panel[p, j]    c, x: rows of T; panel: T [k][32], missing columns zero
//
// The panel (K x 128 or 256 bytes) stays in the second cache for all of m, so nothing is repacked: a block of rows
// walks down the panel once with its sums in registers. The first block is what brings the panel from memory: where it
// may lie there, its lines are prefetched `ahead` bytes before they are read, for hardware looks ahead only to the end
// of a page, which a block passes in 100 ns. One block waits for memory then and the others do not ask it for anything;
// so all of them together ask for the `next` bytes behind the panel, and the first block finds its panel near.
#pragma once

#include "simd/tiles/mma_float-inl.h"

namespace {

constexpr int64_t kPanelColumns = 32;

struct DoubleTerm {
  using Sum = VD;
  static HWY_INLINE VD Broadcast(const char* x) { return hn::Set(kF64, *reinterpret_cast<const double*>(x)); }
  static HWY_INLINE VD Add(VD x, VD b, VD sum) { return hn::MulAdd(x, b, sum); }
};

HWY_INLINE VD LoadFloat(const double* p) { return hn::LoadU(kF64, p); }

// The first `count` elements, at least one and fewer than all; what follows them is not touched.
HWY_INLINE VD LoadPart(const double* p, int64_t count) {
#if HWY_MAX_BYTES == 16
  (void)count;
  return hn::Set(kF64, *p);
#else
  return hn::MaskedLoad(hn::FirstN(kF64, static_cast<size_t>(count)), kF64, p);
#endif
}
HWY_INLINE void StorePart(VD v, double* p, int64_t count) {
#if HWY_MAX_BYTES == 16
  (void)count;
  *p = hn::GetLane(v);
#else
  hn::BlendedStore(v, hn::FirstN(kF64, static_cast<size_t>(count)), kF64, p);
#endif
}

// What several walks of blocks of rows down a panel ask for together: each its part, a line with every step along k, as
// far apart as there is time. All of it at once would keep waiting what the walks themselves read.
class Share {
 public:
  // Of `count` bytes, the part of the `walk`-th of `walks`, which take k steps each. That some lines are asked for more
  // than once costs little.
  Share(const char* bytes, int64_t count, int64_t k, int64_t walk, int64_t walks)
      : apart_((count + k * walks - 1) / (k * walks)), at_(bytes + walk * k * apart_) {}
  HWY_INLINE void Step(int at) const { __builtin_prefetch(at_ + at * apart_, /*rw=*/0, /*locality=*/2); }
  HWY_INLINE void Advance(int by) { at_ += by * apart_; }

 private:
  int64_t apart_;
  const char* at_;
};

template <typename Term, typename T, int R, int V, bool kAhead, typename Beside>
HWY_NOINLINE void PanelBlock(T* c, int64_t c_ld, const char* x, int64_t x_stride, const T* panel, int64_t columns,
                             int64_t k, int64_t ahead, Beside beside) {
  constexpr int kWide = HWY_MAX_BYTES / sizeof(T);
  const hn::DFromV<typename Term::Sum> d;
  const auto load = [&](const char* b, int v) {
    if constexpr (kAhead) __builtin_prefetch(b + v * HWY_MAX_BYTES + ahead, /*rw=*/0, /*locality=*/2);
    return LoadFloat(reinterpret_cast<const T*>(b) + v * kWide);
  };
  // One sum an element however many rows there are: a row's bits are its own.
  MultiplyTile<R, V, 1, Term>(
      x, x_stride, sizeof(T), reinterpret_cast<const char*>(panel), kPanelColumns * sizeof(T), k, load,
      [&](int i, int v, typename Term::Sum sum) {
        T* to = c + i * c_ld + v * kWide;
        const int64_t count = columns - v * kWide;
        if (count >= kWide) {
          hn::StoreU(hn::Add(LoadFloat(to), sum), d, to);
        } else if (count > 0) {
          StorePart(hn::Add(LoadPart(to, count), sum), to, count);
        }
      },
      beside);
}

template <typename Term, typename T>
HWY_INLINE void MultiplyPanel(T* c, int64_t c_ld, const void* x_any, int64_t x_stride, const void* panel, int64_t m,
                              int64_t n, int64_t k, int64_t ahead, const char* behind, int64_t next) {
  constexpr int kWide = HWY_MAX_BYTES / sizeof(T), kTileColumns = kTileVectors * kWide;
  const int64_t most = MostRows(x_stride), walks = (m + most - 1) / most * ((n + kTileColumns - 1) / kTileColumns);
  const bool asks = next > 0 && m > most;
  int64_t walk = 0;
  for (int64_t j = 0; j < n; j += kTileColumns) {
    const T* b = static_cast<const T*>(panel) + j;
    const char* x = static_cast<const char*>(x_any);
    T* to = c + j;
    for (int64_t left = m; left > 0; ++walk) {
      const int64_t rows = NextRows(left, most);
      WithRows(rows, [&]<int R>() {
        const auto multiply = [&]<int V, bool kAhead>(const auto& beside) {
          PanelBlock<Term, T, R, V, kAhead>(to, c_ld, x, x_stride, b, n - j, k, ahead, beside);
        };
        const bool first = left == m && ahead > 0;
        // Where the last columns fit one vector, the others would be multiplied for nothing.
        if (n - j <= kWide)
          multiply.template operator()<1, false>(Nothing());
        else if (asks && first)
          multiply.template operator()<kTileVectors, true>(Share(behind, next, k, walk, walks));
        else if (asks)
          multiply.template operator()<kTileVectors, false>(Share(behind, next, k, walk, walks));
        else if (first)
          multiply.template operator()<kTileVectors, true>(Nothing());
        else
          multiply.template operator()<kTileVectors, false>(Nothing());
      });
      left -= rows;
      x += rows * x_stride;
      to += rows * c_ld;
    }
  }
}

}  // namespace
