// Rows by one panel of words on AMX: what qk_mma_bf16_pairs and the quads of bytes are at that level.
//
//   c[m, n] += x * panel    x: rows of bytes or bf16; panel: words [p][32] of four or two neighbours along k
//
// 16 rows of 16 words of a panel, or of the turned keys of a step of attention, are a tile register's right side as
// they lie. 32 rows by 32 columns take four loads for four multiplications. What is left of a row behind whole steps of
// 64 bytes is copied to a step of its own that ends in zeros, and so is the panel.
#pragma once

#if defined(__AMX_INT8__)

#include "simd/tiles/amx_tiles.h"

namespace quern::simd {
namespace {

// What a word is, and the instruction that multiplies it.
struct PairTiles {
  static constexpr int64_t kTogether = 2;
  template <int kSum, int kRows, int kColumns>
  static HWY_INLINE void Add() {
    _tile_dpbf16ps(kSum, kRows, kColumns);
  }
};

template <bool kSignedRows, bool kSignedPanel>
struct QuadTiles {
  static constexpr int64_t kTogether = 4;
  template <int kSum, int kRows, int kColumns>
  static HWY_INLINE void Add() {
    if constexpr (kSignedRows && kSignedPanel) {
      _tile_dpbssd(kSum, kRows, kColumns);
    } else if constexpr (kSignedRows) {
      _tile_dpbsud(kSum, kRows, kColumns);
    } else if constexpr (kSignedPanel) {
      _tile_dpbusd(kSum, kRows, kColumns);
    } else {
      _tile_dpbuud(kSum, kRows, kColumns);
    }
  }
};

constexpr int64_t kStepBytes = 64;    // of a row
constexpr int64_t kWordsBytes = 128;  // of 32 words of a row of a panel

// The bytes of a row behind whole steps, of up to 32 rows, and the words of the panel that they are multiplied by.
struct LastStep {
  alignas(64) char x[2 * kRegisterRows][kStepBytes], panel[kRegisterRows][kWordsBytes];

  // `elements` along k, less than a step of them, of rows of kRowBytes.
  template <class Words, int64_t kRowBytes>
  HWY_INLINE void SetPanel(const char* from, int64_t elements) {
    const int64_t words = (elements + Words::kTogether - 1) / Words::kTogether;
#pragma clang loop unroll(disable)
    for (int64_t i = 0; i < kRegisterRows; ++i) {
      const __mmask16 there = static_cast<__mmask16>(i < words ? 0xffff : 0);
      __m512i first = _mm512_maskz_loadu_epi32(there, from + i * kRowBytes),
              second = _mm512_maskz_loadu_epi32(there, from + i * kRowBytes + kStepBytes);
      // Of an odd k the neighbour may be anything, and NaN times zero is not zero.
      if (Words::kTogether == 2 && i == elements / 2) {
        first = _mm512_and_si512(first, _mm512_set1_epi32(0xffff));
        second = _mm512_and_si512(second, _mm512_set1_epi32(0xffff));
      }
      _mm512_store_si512(panel[i], first);
      _mm512_store_si512(panel[i] + kStepBytes, second);
    }
  }
  HWY_INLINE void SetRows(const char* from, int64_t stride, int64_t rows, int64_t bytes) {
    const __mmask64 there = (uint64_t{1} << bytes) - 1;
#pragma clang loop unroll(disable)
    for (int64_t r = 0; r < rows; ++r) _mm512_store_si512(x[r], _mm512_maskz_loadu_epi8(there, from + r * stride));
  }
};

// Both sides, each in one or two parts that add up to a number: the products of parts (0, 0), (0, 1) and (1, 0), as
// many as there are, go to the same sums.
template <int kRowParts, int kPanelParts>
struct Sides {
  const char* x[kRowParts];
  int64_t stride[kRowParts];
  const char* panel[kPanelParts];

  // Further along k, in bytes of a row and of a panel.
  HWY_INLINE Sides At(int64_t x_bytes, int64_t panel_bytes) const {
    Sides at = *this;
    for (const char*& part : at.x) part += x_bytes;
    for (const char*& part : at.panel) part += panel_bytes;
    return at;
  }
  HWY_INLINE Sides FromRow(int64_t row) const {
    Sides from = *this;
    for (int i = 0; i < kRowParts; ++i) from.x[i] += row * stride[i];
    return from;
  }
};

template <class Words, bool kTwoRows, bool kTwoColumns>
HWY_INLINE void AddProducts() {
  Words::template Add<0, 4, 6>();
  if constexpr (kTwoColumns) Words::template Add<1, 4, 7>();
  if constexpr (kTwoRows) Words::template Add<2, 5, 6>();
  if constexpr (kTwoRows && kTwoColumns) Words::template Add<3, 5, 7>();
}

template <class Words, int64_t kRowBytes, bool kTwoRows, bool kTwoColumns, int kRowParts, int kPanelParts>
HWY_INLINE void MultiplyWords(const Sides<kRowParts, kPanelParts>& sides) {
  // The first product begins when half of its operands are there.
  const char *const x = sides.x[kRowParts - 1], *const panel = sides.panel[0];
  const int64_t stride = sides.stride[kRowParts - 1];
  _tile_loadd(4, x, stride);
  _tile_loadd(6, panel, kRowBytes);
  Words::template Add<0, 4, 6>();
  if constexpr (kTwoColumns) {
    _tile_loadd(7, panel + kStepBytes, kRowBytes);
    Words::template Add<1, 4, 7>();
  }
  if constexpr (kTwoRows) {
    _tile_loadd(5, x + kRegisterRows * stride, stride);
    Words::template Add<2, 5, 6>();
    if constexpr (kTwoColumns) Words::template Add<3, 5, 7>();
  }
  if constexpr (kRowParts == 2) {
    _tile_loadd(4, sides.x[0], sides.stride[0]);
    if constexpr (kTwoRows) _tile_loadd(5, sides.x[0] + kRegisterRows * sides.stride[0], sides.stride[0]);
    AddProducts<Words, kTwoRows, kTwoColumns>();
  }
  if constexpr (kPanelParts == 2) {
    _tile_loadd(6, sides.panel[1], kRowBytes);
    if constexpr (kTwoColumns) _tile_loadd(7, sides.panel[1] + kStepBytes, kRowBytes);
    AddProducts<Words, kTwoRows, kTwoColumns>();
  }
}

// What is left behind whole steps, of all parts.
template <int kRowParts, int kPanelParts>
struct LastSteps {
  LastStep steps[kRowParts > kPanelParts ? kRowParts : kPanelParts];

  template <class Words, int64_t kRowBytes>
  HWY_INLINE void SetPanel(const Sides<kRowParts, kPanelParts>& from, int64_t elements) {
    for (int i = 0; i < kPanelParts; ++i) steps[i].template SetPanel<Words, kRowBytes>(from.panel[i], elements);
  }
  HWY_INLINE void SetRows(const Sides<kRowParts, kPanelParts>& from, int64_t rows, int64_t bytes) {
    for (int i = 0; i < kRowParts; ++i) steps[i].SetRows(from.x[i], from.stride[i], rows, bytes);
  }
  HWY_INLINE Sides<kRowParts, kPanelParts> sides() const {
    Sides<kRowParts, kPanelParts> last;
    for (int i = 0; i < kRowParts; ++i) last.x[i] = steps[i].x[0], last.stride[i] = kStepBytes;
    for (int i = 0; i < kPanelParts; ++i) last.panel[i] = steps[i].panel[0];
    return last;
  }
};

// As many rows and columns as the tiles are configured for, added to c or, `from_zero`, in its place. `last`, where
// there is one, has what is left behind `steps` steps.
template <class Words, int64_t kRowBytes, bool kTwoRows, bool kTwoColumns, int kRowParts, int kPanelParts>
HWY_NOINLINE void TileOfWords(char* c, int64_t c_stride, Sides<kRowParts, kPanelParts> sides, int64_t steps,
                              const LastSteps<kRowParts, kPanelParts>* last, bool from_zero) {
  constexpr int64_t kHalfBytes = kRegisterColumns * 4;
  char* const second = c + kRegisterRows * c_stride;
  if (from_zero) {
    _tile_zero(0);
    if constexpr (kTwoColumns) _tile_zero(1);
    if constexpr (kTwoRows) _tile_zero(2);
    if constexpr (kTwoRows && kTwoColumns) _tile_zero(3);
  } else {
    _tile_loadd(0, c, c_stride);
    if constexpr (kTwoColumns) _tile_loadd(1, c + kHalfBytes, c_stride);
    if constexpr (kTwoRows) _tile_loadd(2, second, c_stride);
    if constexpr (kTwoRows && kTwoColumns) _tile_loadd(3, second + kHalfBytes, c_stride);
  }
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < steps; ++i, sides = sides.At(kStepBytes, kRegisterRows * kRowBytes)) {
    MultiplyWords<Words, kRowBytes, kTwoRows, kTwoColumns>(sides);
  }
  if (last != nullptr) MultiplyWords<Words, kWordsBytes, kTwoRows, kTwoColumns>(last->sides());
  _tile_stored(0, c, c_stride);
  if constexpr (kTwoColumns) _tile_stored(1, c + kHalfBytes, c_stride);
  if constexpr (kTwoRows) _tile_stored(2, second, c_stride);
  if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, second + kHalfBytes, c_stride);
}

// c: 4 bytes an element, c_ld of them between rows; kFromZero: overwritten. Rows of k elements, not read beyond;
// panels with rows of kRowBytes. 0 < n <= 32, or a multiple of 32.
//
// A block of k at a time, which the first cache keeps for all rows: sums go to c and come back in between.
template <class Words, int64_t kRowBytes = kWordsBytes, int kRowParts = 1, int kPanelParts = 1>
HWY_INLINE void RowsOnTiles(void* c, int64_t c_ld, const Sides<kRowParts, kPanelParts>& all, int64_t m, int64_t n,
                            int64_t k, bool from_zero) {
  constexpr int64_t kElementBytes = 4 / Words::kTogether, kMostRows = 2 * kRegisterRows, kBlockSteps = 8;
  const int64_t bytes = k * kElementBytes, steps = bytes / kStepBytes, rest = bytes % kStepBytes;
  const int64_t first = n < kRegisterColumns ? n : kRegisterColumns, second = (n < 32 ? n : 32) - first;
  LastSteps<kRowParts, kPanelParts> last;
  // `each` rows at a time of [from, to), all of which the tiles are configured for.
  const auto multiply = [&](int64_t from, int64_t to, int64_t each) {
    const bool two_rows = each > kRegisterRows;
    const TileRegisters registers(two_rows ? kRegisterRows : each, two_rows ? each - kRegisterRows : 0, first, second);
    const auto columns = [&]<bool kTwoRows, bool kTwoColumns>(int64_t j) {
      char* const sums = static_cast<char*>(c) + j * 4;
      const auto sides = all.At(0, j * 4);
      if (rest > 0)
        last.template SetPanel<Words, kRowBytes>(sides.At(0, steps * kRegisterRows * kRowBytes), rest / kElementBytes);
      for (int64_t step = 0; step == 0 || step < steps; step += kBlockSteps) {
        const int64_t left = steps - step, count = left < kBlockSteps ? left : kBlockSteps;
        const bool ends = rest > 0 && left <= kBlockSteps;
        for (int64_t row = from; row < to; row += each) {
          const auto here = sides.FromRow(row);
          if (ends) last.SetRows(here.At(steps * kStepBytes, 0), each, rest);
          TileOfWords<Words, kRowBytes, kTwoRows, kTwoColumns>(
              sums + row * c_ld * 4, c_ld * 4, here.At(step * kStepBytes, step * kRegisterRows * kRowBytes), count,
              ends ? &last : nullptr, from_zero && step == 0);
        }
      }
    };
    for (int64_t j = 0; j < n; j += 32) {
      if (two_rows) {
        second > 0 ? columns.template operator()<true, true>(j) : columns.template operator()<true, false>(j);
      } else {
        second > 0 ? columns.template operator()<false, true>(j) : columns.template operator()<false, false>(j);
      }
    }
  };
  const int64_t whole = m - m % kMostRows;
  if (whole > 0) multiply(0, whole, kMostRows);
  if (whole < m) multiply(whole, m, m - whole);
}

// The same of sides in one part.
template <class Words, int64_t kRowBytes = kWordsBytes>
HWY_INLINE void RowsOnTiles(void* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t m,
                            int64_t n, int64_t k, bool from_zero) {
  const Sides<1, 1> sides = {{static_cast<const char*>(x)}, {x_stride}, {static_cast<const char*>(panel)}};
  RowsOnTiles<Words, kRowBytes>(c, c_ld, sides, m, n, k, from_zero);
}

}  // namespace
}  // namespace quern::simd

#endif  // __AMX_INT8__
