// qk_mma_i8_quads, qk_mma_u8_quads: c[i, j] += sum_p x[i, p] * (w[j, p] + add) for m rows of x, i8 or u8, and the n <=
// 32 rows of a panel of quads of bytes: without a sign beside i8, with one beside u8. Exact, but that i32 wraps.
//
//   c: i32, c_ld elements between rows; columns n and beyond are not touched. x: rows of k bytes, x_stride bytes apart,
//   not read past their last element. panel: words [ceil(k / 4)][32] of four neighbours along k, the first in the
//   lowest byte; of the last word as many count as k has left. Any m; fastest as qk_mma_f32. With `from_zero` c =
//   instead of c +=.
//
// AMX multiplies bytes of any signs. One side with a sign and one without is what vpdpbusd multiplies: where both are
// alike, the top bits of the panel's are turned. Elsewhere bytes become words of 16 bits first, of which pairs of
// products are added in 32: the instruction for bytes would saturate.
#include "simd/tiles/amx_words.h"
#include "simd/tiles/mma_float-inl.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

// The even and the odd bytes of all words, as i16.
struct Halves {
  VI16 even, odd;
};

template <bool kSigned>
HWY_INLINE Halves HalvesOf(VU words) {
  const hn::ScalableTag<uint16_t> d16;
  const auto all = hn::BitCast(d16, words);
  if constexpr (kSigned) {
    const VI16 both = hn::BitCast(DI16(), all);
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(both)), hn::ShiftRight<8>(both)};
  } else {
    return {hn::BitCast(DI16(), hn::And(all, hn::Set(d16, 255))), hn::BitCast(DI16(), hn::ShiftRight<8>(all))};
  }
}

// What a step adds: the products of the quads of x, in all lanes, and of a vector of the panel.
template <bool kSigned, bool kSignedPanel>  // kSigned: x
struct QuadTerm {
  using Sum = VI32;
  static constexpr bool kTurns = kByteDot && kSigned == kSignedPanel;  // the panel has `kMore` less in each byte then
  static constexpr int64_t kMore = !kTurns ? 0 : kSigned ? -128 : 128;
  template <bool kSignedWords>
  static HWY_INLINE auto Factor(VU words) {
    if constexpr (kByteDot)
      return words;
    else
      return HalvesOf<kSignedWords>(words);
  }
  static HWY_INLINE auto OfRow(VU words) { return Factor<kSigned>(words); }
  static HWY_INLINE auto OfPanel(VU words) {
    return Factor<kSignedPanel>(kTurns ? hn::Xor(words, hn::Set(kU32, 0x80808080u)) : words);
  }
  static HWY_INLINE auto Broadcast(const char* x) { return OfRow(hn::Set(kU32, LoadScalar<uint32_t>(x))); }
  static HWY_INLINE VI32 Add(VU x, VU b, VI32 sum) {
    const VU &u = kSigned ? b : x, &s = kSigned ? x : b;
    return ByteDot(sum, hn::BitCast(DU8(), u), hn::BitCast(DI8(), s));
  }
  static HWY_INLINE VI32 Add(const Halves& x, const Halves& b, VI32 sum) {
    return WordDot(WordDot(sum, x.even, b.even), x.odd, b.odd);
  }
};

template <bool kSigned>
HWY_NOINLINE uint32_t SumOf(const char* x, int64_t k) {
  using Term = QuadTerm<kSigned, !kSigned>;
  const auto ones = Term::OfPanel(hn::Set(kU32, 0x01010101u));
  VI32 sums = hn::Zero(DI32());
  int64_t i = 0;
  for (; i + kBytes <= k; i += kBytes)
    sums = Term::Add(Term::OfRow(hn::LoadU(kU32, reinterpret_cast<const uint32_t*>(x + i))), ones, sums);
  int32_t sum = hn::GetLane(hn::SumOfLanes(DI32(), sums));
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < k; ++i) sum += kSigned ? int32_t{static_cast<int8_t>(x[i])} : int32_t{static_cast<uint8_t>(x[i])};
  return static_cast<uint32_t>(sum);
}

#if !defined(__AMX_INT8__)
constexpr int kTileColumns = kTileVectors * kLanes;
// Words of 16 bits take more registers a step, so fewer rows fit.
constexpr int kMostRows = kByteDot ? kTileRows : kTileRows > 6 ? 6 : 4;

// The bytes of the last word of a row that there are, then zeros.
HWY_INLINE uint32_t LastWord(const char* x, int64_t count) {
  uint32_t word = 0;
  for (int64_t i = 0; i < count; ++i) word |= static_cast<uint32_t>(static_cast<uint8_t>(x[i])) << 8 * i;
  return word;
}

// Adds the products of `words` words of R rows and of V vectors of columns, and to row i more[i].
template <int R, int V, typename Term>
HWY_NOINLINE void Block(Sums<uint32_t> c, const char* x, int64_t x_stride, const uint32_t* panel, int64_t columns,
                        int64_t words, const uint32_t* more) {
  MultiplyTile<R, V, 1, Term>(
      x, x_stride, sizeof(uint32_t), reinterpret_cast<const char*>(panel), kPanelColumns * sizeof(uint32_t), words,
      [](const char* b, int v) {
        return Term::OfPanel(hn::LoadU(kU32, reinterpret_cast<const uint32_t*>(b) + v * kLanes));
      },
      [&](int i, int v, VI32 sum) {
        const int64_t count = columns - v * kLanes;
        const VU total = hn::Add(hn::BitCast(kU32, sum), hn::Set(kU32, more[i]));
        if (count >= kLanes) return c.Add(i, v * kLanes, total);
        HWY_ALIGN uint32_t part[kLanes];
        hn::Store(total, kU32, part);
#pragma clang loop vectorize(disable) unroll(disable)
        for (int64_t j = 0; j < count; ++j) c.AddOne(i, v * kLanes + j, part[j]);
      });
}

// Calls body.operator()<R>() for the most rows R that there is a block for, of at most `rows`, and gives R. Few rows
// are rare: a block for every number of them would be code for nothing.
template <int R, typename Body>
HWY_INLINE int64_t WithMost(int64_t rows, const Body& body) {
  if constexpr (R > 1) {
    constexpr int kFewer = R > 8 ? 8 : R > 4 ? 4 : R / 2;
    if (rows < R) return WithMost<kFewer>(rows, body);
  }
  body.template operator()<R>();
  return R;
}

template <bool kSigned, bool kSignedPanel>
HWY_INLINE void Multiply(Sums<uint32_t> c, const char* x, int64_t x_stride, const uint32_t* panel, int64_t m, int64_t n,
                         int64_t k, int64_t add) {
  using Term = QuadTerm<kSigned, kSignedPanel>;
  add += Term::kMore;
  const int64_t fit = MostRows(x_stride) < kMostRows ? MostRows(x_stride) : kMostRows;
  while (m > 0) {
    const int64_t rows = WithMost<kMostRows>(m < fit ? m : fit, [&]<int R>() {
      uint32_t more[R] = {}, last[R] = {};
      const uint32_t none[R] = {};
      for (int64_t i = 0; i < R; ++i) {
        if (add != 0) more[i] = static_cast<uint32_t>(add) * SumOf<kSigned>(x + i * x_stride, k);
        last[i] = LastWord(x + i * x_stride + k / 4 * 4, k % 4);
      }
      const auto multiply = [&]<int V>(int64_t j) {
        Block<R, V, Term>(c.At(0, j), x, x_stride, panel + j, n - j, k / 4, more);
        if (k % 4 != 0)
          Block<R, V, Term>(Sums<uint32_t>::Of(c.to + j, c.ld, false), reinterpret_cast<const char*>(last),
                            sizeof(uint32_t), panel + k / 4 * kPanelColumns + j, n - j, 1, none);
      };
      for (int64_t j = 0; j < n; j += kTileColumns) {
        // Where the last columns fit one vector, the others would be multiplied for nothing; of a few rows that is all
        // the same.
        if constexpr (R >= 4) {
          if (n - j <= kLanes) {
            multiply.template operator()<1>(j);
            continue;
          }
        }
        multiply.template operator()<kTileVectors>(j);
      }
    });
    m -= rows;
    x += rows * x_stride;
    c = c.At(rows, 0);
  }
}

#else

template <bool kSigned, bool kSignedPanel>
HWY_INLINE void Multiply(Sums<uint32_t> sums, const char* x, int64_t x_stride, const uint32_t* panel, int64_t m,
                         int64_t n, int64_t k, int64_t add) {
  using Words = QuadTiles<kSigned, kSignedPanel>;
  RowsOnTiles<Words>(sums.to, sums.ld, x, x_stride, panel, m, n, k, sums.from != sums.to);
  if (add == 0) return;
  for (int64_t i = 0; i < m; ++i) {
    const uint32_t more = static_cast<uint32_t>(add) * SumOf<kSigned>(x + i * x_stride, k);
    for (int64_t j = 0; j < n; ++j) sums.to[i * sums.ld + j] += more;
  }
}
#endif

template <bool kSigned>
HWY_INLINE void MultiplyAny(const Sums<uint32_t>& c, const void* x, int64_t x_stride, const void* panel, int64_t m,
                            int64_t n, int64_t k, int64_t words, int64_t add, int64_t is_signed) {
  const auto* rows = static_cast<const char*>(x);
  const auto* quads = static_cast<const uint32_t*>(panel);
  if (k > 4 * words) k = 4 * words;
  if (is_signed != 0) {
    Multiply<kSigned, true>(c, rows, x_stride, quads, m, n, k, add);
  } else {
    Multiply<kSigned, false>(c, rows, x_stride, quads, m, n, k, add);
  }
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_mma_i8_quads)(uint32_t* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t,
                            int64_t m, int64_t n, int64_t k, int64_t words, int64_t add, int64_t is_signed,
                            int64_t from_zero) {
  quern::simd::MultiplyAny<true>(Sums<uint32_t>::Of(c, c_ld, from_zero), x, x_stride, panel, m, n, k, words, add,
                                 is_signed);
}

QUERN_TILE(qk_mma_u8_quads)(uint32_t* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t,
                            int64_t m, int64_t n, int64_t k, int64_t words, int64_t add, int64_t is_signed,
                            int64_t from_zero) {
  quern::simd::MultiplyAny<false>(Sums<uint32_t>::Of(c, c_ld, from_zero), x, x_stride, panel, m, n, k, words, add,
                                  is_signed);
}
