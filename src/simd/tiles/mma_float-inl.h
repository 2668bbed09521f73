// The register tile of all matrix products of floats, and of bytes without scales:
// R rows of x times V vectors of columns of b, over k.
//
// x is read one element at a time and broadcast, b in whole vectors, so b wants to lie with its columns adjacent (a
// kn32 panel, a transposed tile of keys, rows of values). With few rows, `kChains` sums over interleaved k keep
// enough FMAs in flight to hide their latency.
#pragma once

#include "simd/tiles/dot_float-inl.h"

namespace {

// Columns in vectors and rows that fit the registers beside V vectors of b and a broadcast.
constexpr int kTileVectors = 2;
constexpr int kTileRows = kManyRegisters ? 12 : HWY_MAX_BYTES == 32 ? 6 : 4;

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

// Columns of a panel.
constexpr int64_t kPanelColumns = 32;

template <typename T>
alignas(64) constexpr T kZeros[kPanelColumns] = {};

// Where sums of a panel's columns go, rows `ld` elements apart, and what they are added to: what is there, or zeros.
template <typename T>
struct Sums {
  T* to;
  int64_t ld;
  const T* from;
  int64_t from_ld;

  static HWY_INLINE Sums Of(T* c, int64_t c_ld, bool from_zero) {
    return {c, c_ld, from_zero ? kZeros<T> : c, from_zero ? 0 : c_ld};
  }
  HWY_INLINE Sums At(int64_t row, int64_t column) const {
    return {to + row * ld + column, ld, from + row * from_ld + column, from_ld};
  }
  HWY_INLINE void AddOne(int row, int64_t column, T sum) const {
    to[row * ld + column] = from[row * from_ld + column] + sum;
  }
  template <typename V>
  HWY_INLINE void Add(int row, int column, V sum) const {
    const hn::DFromV<V> d;
    hn::StoreU(hn::Add(hn::LoadU(d, from + row * from_ld + column), sum), d, to + row * ld + column);
  }
  // The first `count` columns of a vector; of none or fewer nothing is touched.
  template <typename V>
  HWY_INLINE void Add(int row, int column, V sum, int64_t count) const {
    if (count >= static_cast<int64_t>(HWY_MAX_BYTES / sizeof(T)))
      Add(row, column, sum);
    else if (count > 0)
      StorePart(hn::Add(LoadPart(from + row * from_ld + column, count), sum), to + row * ld + column, count);
  }
};

// What a step adds to the sums: the product of one float of x, in all lanes, and a vector of b.
struct FloatTerm {
  using Sum = VF;
  static HWY_INLINE VF Broadcast(const char* x) { return hn::Set(kF32, *reinterpret_cast<const float*>(x)); }
  static HWY_INLINE VF Add(VF x, VF b, VF sum) { return hn::MulAdd(x, b, sum); }
};

// Beside the steps of a tile nothing else is done.
struct Nothing {
  HWY_INLINE void operator()() const {}
};

// For row i, vector v: finish(i, v, sum over p < k of x(i, p) * b(p, v)), where x(i, p) is the float at
// x + i * x_row + p * x_step and b(p, v) is load(b + p * b_row, v); strides in bytes. Or another Term of the two.
// `beside` is called for each p, and may ask for what comes next.
template <int R, int V, int kChains, typename Term = FloatTerm, typename Load, typename Finish,
          typename Beside = Nothing>
HWY_INLINE void MultiplyTile(const char* x, int64_t x_row, int64_t x_step, const char* b, int64_t b_row, int64_t k,
                             const Load& load, const Finish& finish, Beside beside = {}) {
  using Sum = typename Term::Sum;
  Sum sum[kChains][R][V];
#pragma clang loop unroll(full)
  for (int c = 0; c < kChains; ++c) {
#pragma clang loop unroll(full)
    for (int i = 0; i < R; ++i) {
#pragma clang loop unroll(full)
      for (int v = 0; v < V; ++v) sum[c][i][v] = hn::Zero(hn::DFromV<Sum>());
    }
  }
  // One pointer for three rows: [p], [p + row], [p + 2 * row] are addressing modes, a pointer for each row is a spill.
  constexpr int kPointers = (R + 2) / 3;
  const char* rows[kPointers];
#pragma clang loop unroll(full)
  for (int g = 0; g < kPointers; ++g) rows[g] = Opaque(x + 3 * g * x_row);
  const auto step = [&](int c, int at) __attribute__((always_inline)) {
    decltype(load(b, 0)) vb[V];
#pragma clang loop unroll(full)
    for (int v = 0; v < V; ++v) vb[v] = load(b + at * b_row, v);
#pragma clang loop unroll(full)
    for (int i = 0; i < R; ++i) {
      const auto vx = Term::Broadcast(rows[i / 3] + i % 3 * x_row + at * x_step);
#pragma clang loop unroll(full)
      for (int v = 0; v < V; ++v) sum[c][i][v] = Term::Add(vx, vb[v], sum[c][i][v]);
    }
    beside();
  };
  const auto advance = [&](int by) {
    b += by * b_row;
#pragma clang loop unroll(full)
    for (int g = 0; g < kPointers; ++g) rows[g] += by * x_step;
  };
  // Moving the pointers takes the same ports as the FMAs: once every few steps.
  constexpr int kSteps = kChains > 4 ? kChains : 4;
  int64_t p = 0;
  for (; p + kSteps <= k; p += kSteps) {
    [&]<int... kAt>(std::integer_sequence<int, kAt...>) {
      (step(kAt % kChains, kAt), ...);
    }(std::make_integer_sequence<int, kSteps>());
    advance(kSteps);
  }
#pragma clang loop unroll(disable)
  for (; p < k; ++p) {
    step(0, 0);
    advance(1);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < R; ++i) {
#pragma clang loop unroll(full)
    for (int v = 0; v < V; ++v) {
      Sum total = sum[0][i][v];
#pragma clang loop unroll(full)
      for (int c = 1; c < kChains; ++c) total = hn::Add(total, sum[c][i][v]);
      finish(i, v, total);
    }
  }
}

// How many sums over interleaved k a tile of r rows and v vectors needs to have more than 8 FMAs in flight.
constexpr int ChainsFor(int r, int v) {
  if (r * v > 8 || (r * v == 8 && !kManyRegisters) || (r * v == 6 && HWY_MAX_BYTES == 16)) return 1;
  return r * v >= 4 ? 2 : r * v >= 2 ? 4 : 8;
}

// Rows of the next block when `left` rows remain: nearly equal blocks of at most `most`.
HWY_INLINE int64_t NextRows(int64_t left, int64_t most) {
  if (left <= most) return left;  // as most calls have it: two divisions take as long as 40 multiply-adds
  const int64_t blocks = (left + most - 1) / most;
  const int64_t rows = (left + blocks - 1) / blocks;
  // 4 rows of 2 vectors are too few sums to hide the latency, and too many to have them twice in 16 registers.
  return rows == 4 && left > 4 && kTileRows == 6 ? 5 : rows;
}

// The most rows of x to read side by side. Rows a multiple of 4 KiB apart share the sets of the first cache, whose 8
// or 12 ways must hold one line of each row and the lines of b passing through.
HWY_INLINE int64_t MostRows(int64_t x_row) { return (x_row & 4095) == 0 && kTileRows > 8 ? 8 : kTileRows; }

// Calls body.operator()<rows>(), for rows from 1 to R; most are found first.
template <int R = kTileRows, typename Body>
HWY_INLINE void WithRows(int64_t rows, const Body& body) {
  if (rows == R) {
    body.template operator()<R>();
  } else if constexpr (R > 1) {
    WithRows<R - 1>(rows, body);
  } else {
    __builtin_trap();
  }
}

}  // namespace
