// 16 rows of blocks of 32 interleaved for 4-way dot products: panels as kir/layout.h has them (Panel16), with their
// codes or the numbers that those stand for.
#pragma once

#include "simd/tiles/quant_block32.h"
#include "simd/tiles/quant_panel.h"

namespace quern::simd {
namespace {

// The scale is the first half of a block, and the second what is added; or the first byte a power of two, which is not
// zero where a row is missing.
template <class Format>
HWY_INLINE void PackHeader(const BlockColumn& column, int64_t rows, float* scales, float* added) {
  const DU32 d;
  const DF32 df;
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 32
  if constexpr (!Format::kPower && !Format::kAdded) {
    // A word of each row is put in by itself: 16 bytes of each would be turned for two that are wanted.
    using Words = int16_t __attribute__((vector_size(16)));
    for (int v = 0; v < kLineVectors; ++v) {
      Words words;
      QUERN_UNROLL
      for (int r = 0; r < kLanes; ++r) words[r] = LoadScalar<int16_t>(column.Row(v * kLanes + r));
      _mm256_storeu_ps(scales + v * kLanes, _mm256_cvtph_ps(__builtin_bit_cast(__m128i, words)));
    }
    return;
  }
#endif
  const Lines4 header = TransposeRows(column, 0);
  for (int i = 0; i < kLineVectors; ++i) {
    const auto words = hn::BitCast(d, header.line[0][i]);
    if constexpr (Format::kPower) {
      const auto power = hn::And(words, hn::Set(d, 255));
      const auto usual = hn::ShiftLeft<23>(hn::Sub(power, hn::Set(d, 1)));
      const auto small = hn::ShiftLeft<21>(hn::Add(power, hn::Set(d, 1)));  // of 0 and 1
      const auto bits = hn::IfThenElse(hn::Lt(power, hn::Set(d, 2)), small, usual);
      const auto there =
          hn::Lt(hn::Iota(d, static_cast<uint32_t>(i * kLanes)), hn::Set(d, static_cast<uint32_t>(rows)));
      hn::StoreU(hn::BitCast(df, hn::IfThenElseZero(there, bits)), df, scales + i * kLanes);
    } else {
      hn::StoreU(LowHalves(words), df, scales + i * kLanes);
    }
    if constexpr (Format::kAdded) hn::StoreU(LowHalves(hn::ShiftRight<16>(words)), df, added + i * kLanes);
  }
}

// Line e holds elements 4 e .. 4 e + 3 of all rows: their fifth bits of the 32 of each row.
HWY_INLINE VU8 FifthOf(hn::Vec<DU32> bits, int e) {
  const DU32 d;
  const auto four = hn::And(hn::ShiftRightSame(bits, 4 * e), hn::Set(d, 15));
  // Bit c to bit 4 of byte c.
  const auto spread = hn::And(hn::Mul(four, hn::Set(d, 0x00204081)), hn::Set(d, 0x01010101));
  return hn::BitCast(DU8(), hn::ShiftLeft<4>(spread));
}

// Codes as a panel has them: kSigned, the numbers that they stand for.
template <class Format, bool kSigned>
HWY_INLINE VU8 CodesOf(VU8 codes) {
  if constexpr (!kSigned) return codes;
  const DU8 d;
  const VU8 numbers = Quants<Format, true>(d, codes);
  return Format::kLevels == nullptr ? hn::Sub(numbers, hn::Set(d, Format::kOffset)) : numbers;
}

template <class Format, bool kSigned = false>
HWY_INLINE void PackPanel(void* dst, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  const DU8 d;
  auto* panel = static_cast<uint8_t*>(dst);
  auto* scales = reinterpret_cast<float*>(panel + PanelAt<Format>(k).scales);
  auto* added = reinterpret_cast<float*>(panel + PanelAt<Format>(k).supers);
  BlockColumns<Format> columns(src, src_stride, rows);
  for (int64_t b = 0; b < k / 32; ++b, panel += 512, scales += 16, added += Format::kAdded ? 16 : 0) {
    const BlockColumn column = columns.At(b);
    PackHeader<Format>(column, rows, scales, added);
    if constexpr (Format::kBytes == Q8_0::kBytes) {
      for (int piece = 0; piece < 2; ++piece) {
        const Lines4 lines = TransposeRows(column, 2 + piece * 16);
        for (int e = 0; e < 4; ++e) {
          for (int i = 0; i < kLineVectors; ++i) {
            const VU8 numbers = lines.line[e][i];
            const VU8 codes = kSigned ? numbers : hn::Xor(numbers, hn::Set(d, 0x80));
            hn::StoreU(codes, d, panel + (piece * 4 + e) * 64 + i * kBytes);
          }
        }
      }
    } else {
      const Lines4 lines = TransposeRows(column, Format::kNibbles);
      Lines4 bits;
      if constexpr (Format::kHigh != 0) bits = TransposeRows(column, Format::kHigh);
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i) {
          VU8 low = hn::And(lines.line[e][i], hn::Set(d, 15)), high = hn::ShiftRight<4>(lines.line[e][i]);
          if constexpr (Format::kHigh != 0) {
            const auto of_rows = hn::BitCast(DU32(), bits.line[0][i]);
            low = hn::Or(low, FifthOf(of_rows, e));
            high = hn::Or(high, FifthOf(of_rows, 4 + e));
          }
          hn::StoreU(CodesOf<Format, kSigned>(low), d, panel + e * 64 + i * kBytes);
          hn::StoreU(CodesOf<Format, kSigned>(high), d, panel + (4 + e) * 64 + i * kBytes);
        }
      }
    }
  }
}

}  // namespace
}  // namespace quern::simd
