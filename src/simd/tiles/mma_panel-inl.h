// Rows of x by one panel of 32 columns (kn32), of floats or doubles: what qk_mma_f32 and qk_mma_f64 are.
//
//   c[i, j] += sum_p x[i, p] * panel[p, j]    c, x: rows of T; panel: T [k][32], missing columns zero
//
// or, from zero, c[i, j] = that sum: a tile that is nothing before is neither written nor read for it. Of a panel of 64
// rows that is a fiftieth of the time, of one of 27 a twentieth.
//
// The panel (K x 128 or 256 bytes) stays in the second cache for all of m, so nothing is repacked: a block of rows
// walks down the panel once with its sums in registers. The first block is what brings the panel from memory: where it
// may lie there, its lines are prefetched `ahead` bytes before they are read, for hardware looks ahead only to the end
// of a page, which a block passes in 100 ns. One block waits for memory then and the others do not ask it for anything;
// so all of them together ask for the `next` bytes behind the panel, and the first block finds its panel near.
#pragma once

#include "simd/tiles/mma_float-inl.h"

namespace {

struct DoubleTerm {
  using Sum = VD;
  static HWY_INLINE VD Broadcast(const char* x) { return hn::Set(kF64, *reinterpret_cast<const double*>(x)); }
  static HWY_INLINE VD Add(VD x, VD b, VD sum) { return hn::MulAdd(x, b, sum); }
};

// Two lines that a walk down a panel asks for with each step along k.
class Ask {
 public:
  // Those of the panel itself, `ahead` bytes before they are read.
  static Ask Near(const void* panel, int64_t ahead) {
    const char* const at = static_cast<const char*>(panel) + ahead;
    return {at, kPanelBytes, at + 64, kPanelBytes};
  }
  // Of `count` bytes behind the panels the part of the `walk`-th of `walks`, as far apart as there is time: all of them
  // at once would keep waiting what the walks read themselves. That some are asked for twice costs little.
  static Ask Next(const char* bytes, int64_t count, int64_t k, int64_t walk, int64_t walks) {
    const int64_t apart = (count + 2 * k * walks - 1) / (2 * k * walks);
    const char* const at = bytes + walk * 2 * k * apart;
    return {at, apart, at + k * apart, apart};
  }
  // Both, a line of each: the panel has been asked for by the walks before this one, if there were any.
  static Ask Both(const void* panel, int64_t ahead, const char* bytes, int64_t count, int64_t k, int64_t walks) {
    return {static_cast<const char*>(panel) + ahead, kPanelBytes, bytes, (count + k * walks - 1) / (k * walks)};
  }
  HWY_INLINE void operator()() {
    __builtin_prefetch(at_, /*rw=*/0, /*locality=*/2);
    __builtin_prefetch(other_, /*rw=*/0, /*locality=*/2);
    at_ += apart_;
    other_ += other_apart_;
  }

 private:
  static constexpr int64_t kPanelBytes = kPanelColumns * sizeof(float);  // of a step
  Ask(const char* at, int64_t apart, const char* other, int64_t other_apart)
      : at_(at), other_(other), apart_(apart), other_apart_(other_apart) {}
  const char *at_, *other_;
  int64_t apart_, other_apart_;
};

template <typename Term, typename T, int R, int V, typename Beside>
HWY_NOINLINE void PanelBlock(Sums<T> sums, const char* x, int64_t x_stride, const T* panel, int64_t columns, int64_t k,
                             Beside beside) {
  constexpr int kWide = HWY_MAX_BYTES / sizeof(T);
  const auto load = [&](const char* b, int v) { return LoadFloat(reinterpret_cast<const T*>(b) + v * kWide); };
  // One sum an element however many rows there are: a row's bits are its own.
  MultiplyTile<R, V, 1, Term>(
      x, x_stride, sizeof(T), reinterpret_cast<const char*>(panel), kPanelColumns * sizeof(T), k, load,
      [&](int i, int v, typename Term::Sum sum) { sums.Add(i, v * kWide, sum, columns - v * kWide); }, beside);
}

template <typename Term, bool kAsks, typename T>
HWY_INLINE void MultiplyPanel(const Sums<T>& sums, const void* x_any, int64_t x_stride, const void* panel, int64_t m,
                              int64_t n, int64_t k, int64_t ahead, const char* behind, int64_t next) {
  constexpr int kWide = HWY_MAX_BYTES / sizeof(T), kTileColumns = kTileVectors * kWide;
  // One or two rows have sums in registers for all columns, beside vectors of the panel. It may come from memory, and
  // is read once, line after line, not in walks that leave lines out.
  constexpr int kAllVectors = kPanelColumns / kWide, kAtOnce = 8 / kAllVectors;
  if constexpr (kAllVectors > kTileVectors && kAtOnce > 0) {
    if (m <= kAtOnce && n > kTileColumns) {
      return WithRows(m, [&]<int R>() {
        if constexpr (R <= kAtOnce) {
          const auto multiply = [&](const auto& beside) {
            PanelBlock<Term, T, R, kAllVectors>(sums, static_cast<const char*>(x_any), x_stride,
                                                static_cast<const T*>(panel), n, k, beside);
          };
          if (kAsks && ahead > 0) return multiply(Ask::Near(panel, ahead));
          multiply(Nothing());
        }
      });
    }
  }
  const int64_t most = MostRows(x_stride);
  const int64_t walks = next > 0 ? (m + most - 1) / most * ((n + kTileColumns - 1) / kTileColumns) : 1;
  int64_t walk = 0;
  for (int64_t j = 0; j < n; j += kTileColumns) {
    const T* b = static_cast<const T*>(panel) + j;
    const char* x = static_cast<const char*>(x_any);
    Sums<T> to = sums.At(0, j);
    for (int64_t left = m; left > 0; ++walk) {
      const int64_t rows = NextRows(left, most);
      WithRows(rows, [&]<int R>() {
        const auto multiply = [&]<int V>(const auto& beside) {
          PanelBlock<Term, T, R, V>(to, x, x_stride, b, n - j, k, beside);
        };
        const bool first = left == m && ahead > 0;
        // Where the last columns fit one vector, the others would be multiplied for nothing.
        if (n - j <= kWide) return multiply.template operator()<1>(Nothing());
        if (kAsks && (next > 0 || first)) {
          const Ask ask = next == 0 ? Ask::Near(b, ahead)
                          : first   ? Ask::Both(b, ahead, behind, next, k, walks)
                                    : Ask::Next(behind, next, k, walk, walks);
          return multiply.template operator()<kTileVectors>(ask);
        }
        multiply.template operator()<kTileVectors>(Nothing());
      });
      left -= rows;
      x += rows * x_stride;
      to = to.At(rows, 0);
    }
  }
}

}  // namespace
