// 16 rows of blocks of 256 interleaved for 4-way dot products: panels as kir/layout.h has them (Panel16), or where
// scales are words as WordPanelAt of quant_layout.h.
//
// The rows are transposed while still packed, nibbles and the bits above them apart, and made codes afterwards: half
// the shuffles.
#pragma once

#include "simd/tiles/quant_codes.h"
#include "simd/tiles/quant_panel.h"

namespace quern::simd {
namespace {

// Where the header of one block column goes.
//   scales: of the 16 rows for each group, f32 d * scale;  kInWords: the scale twice, in both words of a lane
//   mins:   word pairs of minimums;  supers: dmin;  kInWords: d, then dmin
// kAlways: words also where a block has one scale.
template <bool kInWords, bool kAlways>
struct HeaderAt {
  static constexpr bool kOneInWords = kInWords && kAlways;

  void* scales;
  uint32_t* mins;
  float* supers;

  HWY_INLINE void StoreScale(int group, int i, [[maybe_unused]] VF32 d, VI32 scale) const {
    if constexpr (kInWords) {
      const VI32 words = hn::Or(hn::And(scale, hn::Set(DI32(), 0xffff)), hn::ShiftLeft<16>(scale));
      hn::StoreU(words, DI32(), static_cast<int32_t*>(scales) + group * 16 + i * kLanes);
    } else {
      const VF32 product = hn::Mul(d, hn::ConvertTo(DF32(), scale));
      hn::StoreU(product, DF32(), static_cast<float*>(scales) + group * 16 + i * kLanes);
    }
  }
  HWY_INLINE void StoreD(int i, VF32 d) const {
    if constexpr (kInWords) hn::StoreU(d, DF32(), supers + i * kLanes);
  }
  HWY_INLINE void StoreDmin(int i, VF32 dmin) const {
    hn::StoreU(dmin, DF32(), supers + (kInWords ? 16 : 0) + i * kLanes);
  }
};

// The 16 header bytes of a block are the dwords (d, dmin), a, b, c, so the six-bit fields of all rows unpack at once,
// four fields in the bytes of a lane.
template <class Format, class To>
  requires(Format::kHasMins && Format::kGroup == 32)
HWY_INLINE void PackHeader(const BlockColumn& column, const To& to) {
  const DU32 d;
  const Lines4 header = TransposeRows(column, 0);
  for (int i = 0; i < kLineVectors; ++i) {
    const auto halves = hn::BitCast(d, header.line[0][i]);
    const auto a = hn::BitCast(d, header.line[1][i]), b = hn::BitCast(d, header.line[2][i]);
    const auto c = hn::BitCast(d, header.line[3][i]);
    const auto six = hn::Set(d, 0x3f3f3f3f), four = hn::Set(d, 0x0f0f0f0f), top = hn::Set(d, 0x30303030);
    const auto high_scales = hn::Or(hn::And(c, four), hn::And(hn::ShiftRight<2>(a), top));
    const auto high_mins = hn::Or(hn::And(hn::ShiftRight<4>(c), four), hn::And(hn::ShiftRight<2>(b), top));
    const hn::Vec<DU32> scale_bytes[2] = {hn::And(a, six), high_scales};
    const hn::Vec<DU32> min_bytes[2] = {hn::And(b, six), high_mins};
    const VF32 block_d = LowHalves(halves), block_dmin = LowHalves(hn::ShiftRight<16>(halves));
    to.StoreD(i, block_d);
    to.StoreDmin(i, block_dmin);
    const auto byte = hn::Set(d, 255);
    for (int s = 0; s < 8; ++s) {
      const auto scale = hn::And(hn::ShiftRightSame(scale_bytes[s / 4], s % 4 * 8), byte);
      to.StoreScale(s, i, block_d, hn::BitCast(DI32(), scale));
    }
    for (int pair = 0; pair < 4; ++pair) {
      const auto two = hn::ShiftRightSame(min_bytes[pair / 2], pair % 2 * 16);
      const auto words = hn::Or(hn::And(two, byte), hn::ShiftLeft<8>(hn::And(two, hn::Set(d, 0xff00))));
      hn::StoreU(words, d, to.mins + pair * 16 + i * kLanes);
    }
  }
}

// 16 signed scales; the last 16 bytes of a block end with two of them and d.
template <class Format, class To>
  requires(Format::kCodes == 64)
HWY_INLINE void PackHeader(const BlockColumn& column, const To& to) {
  const Lines4 bytes = TransposeRows(column, Format::kScales), tail = TransposeRows(column, Format::kBytes - 16);
  for (int i = 0; i < kLineVectors; ++i) {
    const VF32 d = LowHalves(hn::ShiftRight<16>(hn::BitCast(DU32(), tail.line[3][i])));
    to.StoreD(i, d);
    for (int g = 0; g < 16; ++g) {
      const VI32 four = hn::BitCast(DI32(), bytes.line[g / 4][i]);
      to.StoreScale(g, i, d, hn::ShiftRight<24>(hn::ShiftLeftSame(four, 24 - g % 4 * 8)));
    }
  }
}

// 16 bytes of a scale and a minimum each; the last 16 bytes of a block end with d and dmin.
template <class Format, class To>
  requires(Format::kHasMins && Format::kGroup == 16)
HWY_INLINE void PackHeader(const BlockColumn& column, const To& to) {
  const DU32 d;
  const auto four = hn::Set(d, 15);
  const Lines4 bytes = TransposeRows(column, Format::kScales), tail = TransposeRows(column, Format::kBytes - 16);
  for (int i = 0; i < kLineVectors; ++i) {
    const auto halves = hn::BitCast(d, tail.line[3][i]);
    const VF32 block_d = LowHalves(halves), block_dmin = LowHalves(hn::ShiftRight<16>(halves));
    to.StoreD(i, block_d);
    to.StoreDmin(i, block_dmin);
    for (int g = 0; g < 16; g += 2) {
      const auto two = hn::ShiftRightSame(hn::BitCast(d, bytes.line[g / 4][i]), g % 4 * 8);
      to.StoreScale(g, i, block_d, hn::BitCast(DI32(), hn::And(two, four)));
      to.StoreScale(g + 1, i, block_d, hn::BitCast(DI32(), hn::And(hn::ShiftRight<8>(two), four)));
      const auto second = hn::ShiftLeft<16>(hn::And(hn::ShiftRight<12>(two), four));
      hn::StoreU(hn::Or(hn::And(hn::ShiftRight<4>(two), four), second), d, to.mins + g / 2 * 16 + i * kLanes);
    }
  }
}

// Twelve bytes of scales and d end a block.
template <class Format, class To>
  requires(Format::kCodes == 8)
HWY_INLINE void PackHeader(const BlockColumn& column, const To& to) {
  const DU32 d;
  const Lines4 tail = TransposeRows(column, Format::kBytes - 16);
  for (int i = 0; i < kLineVectors; ++i) {
    const auto word = [&](int w) { return hn::BitCast(d, tail.line[w][i]); };
    const auto joined = [&](int w) { return hn::Or(hn::ShiftRight<16>(word(w)), hn::ShiftLeft<16>(word(w + 1))); };
    const hn::Vec<DU32> low[2] = {joined(0), joined(1)};
    const auto high = joined(2);
    const VF32 block_d = LowHalves(hn::ShiftRight<16>(word(3)));
    to.StoreD(i, block_d);
    for (int g = 0; g < 16; ++g) {
      const auto four = hn::And(hn::ShiftRightSame(low[g / 4 % 2], g % 4 * 8 + g / 8 * 4), hn::Set(d, 15));
      const auto two = hn::And(hn::ShiftRightSame(high, g % 4 * 8 + g / 4 * 2), hn::Set(d, 3));
      const VI32 scale = hn::BitCast(DI32(), hn::Or(four, hn::ShiftLeft<4>(two)));
      to.StoreScale(g, i, block_d, hn::Sub(scale, hn::Set(DI32(), 32)));
    }
  }
}

// A block begins with d, or ends with it.
template <class Format, class To>
  requires(Format::kGroup == 256)
HWY_INLINE void PackHeader(const BlockColumn& column, const To& to) {
  const Lines4 header = TransposeRows(column, Bytes<Format> ? 0 : Format::kBytes - 16);
  for (int i = 0; i < kLineVectors; ++i) {
    VF32 d;
    if constexpr (Bytes<Format>) {
      d = hn::BitCast(DF32(), header.line[0][i]);
    } else {
      d = LowHalves(hn::ShiftRight<16>(hn::BitCast(DU32(), header.line[3][i])));
    }
    if constexpr (To::kOneInWords) {
      to.StoreScale(0, i, d, hn::Set(DI32(), 1));
      to.StoreD(i, d);
    } else {
      hn::StoreU(d, DF32(), static_cast<float*>(to.scales) + i * kLanes);
    }
  }
}

// A block begins with d, 16 bits and 32 of scales.
template <class Format, class To>
  requires(Format::kLevels != nullptr && !Format::kGrid)
HWY_INLINE void PackHeader(const BlockColumn& column, const To& to) {
  const DU32 d;
  const Lines4 header = TransposeRows(column, 0);
  for (int i = 0; i < kLineVectors; ++i) {
    const auto first = hn::BitCast(d, header.line[0][i]), low = hn::BitCast(d, header.line[1][i]);
    const VF32 block_d = LowHalves(first);
    to.StoreD(i, block_d);
    for (int g = 0; g < 8; ++g) {
      const auto four = hn::And(hn::ShiftRightSame(low, g * 4), hn::Set(d, 15));
      const auto two = hn::And(hn::ShiftRightSame(first, 16 + g * 2), hn::Set(d, 3));
      const VI32 scale = hn::BitCast(DI32(), hn::Or(four, hn::ShiftLeft<4>(two)));
      to.StoreScale(g, i, block_d, hn::Sub(scale, hn::Set(DI32(), 32)));
    }
  }
}

// Row by row: grids are looked up by each on its own.
template <class Format, class To>
  requires(Format::kGrid)
HWY_INLINE void PackHeader(const BlockColumn& column, const To& to) {
  constexpr int kGroups = 256 / Format::kGroup;
  alignas(64) int32_t scales[kGroups][16];
  alignas(64) float block_d[16];
  for (int r = 0; r < 16; ++r) {
    alignas(16) int8_t of_row[16];
    GridBlock<Format>::Scales(column.AnyRow(r), of_row);
    for (int g = 0; g < kGroups; ++g) scales[g][r] = of_row[g];
    block_d[r] = GridBlock<Format>::D(column.AnyRow(r));
  }
  for (int i = 0; i < kLineVectors; ++i) {
    const VF32 d = hn::Load(DF32(), block_d + i * kLanes);
    to.StoreD(i, d);
    for (int g = 0; g < kGroups; ++g) to.StoreScale(g, i, d, hn::Load(DI32(), scales[g] + i * kLanes));
  }
}

template <class Format, class Store>
  requires(Format::kGrid)
HWY_INLINE void ForCodes(const BlockColumn& column, const Store& store) {
  const D32 d;
  alignas(64) uint8_t lines[8][64];
  for (int s = 0; s < 8; ++s) {
    for (int r = 0; r < 16; ++r) {
      hn::Vec<D32> codes[kGridParts];
      GridCodes<Format>(column.AnyRow(r), s, codes);
      alignas(32) uint8_t row[32];
      for (int i = 0; i < kGridParts; ++i) hn::Store(codes[i], d, row + i * kGridBytes);
      for (int e = 0; e < 8; ++e) StoreScalar(LoadScalar<uint32_t>(row + 4 * e), lines[e] + 4 * r);
    }
    for (int e = 0; e < 8; ++e) {
      for (int i = 0; i < kLineVectors; ++i) store(hn::Load(DU8(), lines[e] + i * kBytes), s * 32 + e * 4, i);
    }
  }
}

// Calls store(codes, j, i) with vector i of a line of codes: of elements j .. j + 3 of a block for all rows.
template <class Format, class Store>
  requires(!Format::kGrid)
HWY_INLINE void ForCodes(const BlockColumn& column, const Store& store) {
  // Pieces of 16 bytes, two to a run of 32.
  if constexpr (Format::kLevels != nullptr) {
    for (int piece = 0; piece < 8; ++piece) {
      const Lines4 lines = TransposeRows(column, Format::kNibbles + piece * 16);
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i) {
          store(hn::And(lines.line[e][i], hn::Set(DU8(), 15)), piece * 32 + e * 4, i);
          store(hn::ShiftRight<4>(lines.line[e][i]), piece * 32 + 16 + e * 4, i);
        }
      }
    }
  } else if constexpr (Bytes<Format>) {
    for (int piece = 0; piece < 16; ++piece) {
      const Lines4 lines = TransposeRows(column, Format::kQuants + piece * 16);
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i)
          store(hn::Xor(lines.line[e][i], hn::Set(DU8(), 0x80)), piece * 16 + e * 4, i);
      }
    }
  } else if constexpr (Digits<Format>) {
    // Five digits of each of 32 bytes and of 16, four of the last four: bytes 10 to 13 of the tail.
    const auto digits = [&](VU8 bytes, int count, int j, int apart, int i) {
      bytes = FromZero(bytes);
      for (int n = 0; n < count; ++n, bytes = BehindDigits(bytes, 1)) store(FirstDigit(bytes), j + n * apart, i);
    };
    for (int piece = 0; piece < 3; ++piece) {
      const Lines4 lines = TransposeRows(column, Format::kDigits + piece * 16);
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i)
          digits(lines.line[e][i], 5, piece < 2 ? piece * 16 + e * 4 : 160 + e * 4, piece < 2 ? 32 : 16, i);
      }
    }
    const Lines4 tail = TransposeRows(column, Format::kBytes - 16);
    for (int i = 0; i < kLineVectors; ++i) {
      const auto low = hn::ShiftRight<16>(hn::BitCast(DU32(), tail.line[2][i]));
      const auto high = hn::ShiftLeft<16>(hn::BitCast(DU32(), tail.line[3][i]));
      digits(hn::BitCast(DU8(), hn::Or(low, high)), 4, 240, 4, i);
    }
  } else if constexpr (Format::kCodes < 16) {
    Lines4 high[2] = {};
    if constexpr (Format::kCodes == 8) {
      for (int i = 0; i < 2; ++i) high[i] = TransposeRows(column, Format::kHigh + i * 16);
    }
    for (int piece = 0; piece < 4; ++piece) {
      const int half = piece / 2, from = piece % 2 * 16;
      const Lines4 lines = TransposeRows(column, Format::kPairs + half * 32 + from);
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i) {
          VU8 stream[4];
          JoinPairs<Format>(lines.line[e][i], high[piece % 2].line[e][i], half, stream);
          for (int s = 0; s < 4; ++s) store(stream[s], half * 128 + s * 32 + from + e * 4, i);
        }
      }
    }
  } else if constexpr (Format::kHasMins) {
    Lines4 high[2] = {};
    if constexpr (Format::kCodes == 32) {
      for (int i = 0; i < 2; ++i) high[i] = TransposeRows(column, Format::kHigh + i * 16);
    }
    for (int piece = 0; piece < 8; ++piece) {
      const Lines4 lines = TransposeRows(column, Format::kNibbles + piece * 16);
      const int chunk = piece / 2, j = chunk * 64 + piece % 2 * 16;
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i) {
          VU8 first, second;
          JoinChunk<Format>(lines.line[e][i], high[piece % 2].line[e][i], chunk, first, second);
          store(first, j + e * 4, i);
          store(second, j + 32 + e * 4, i);
        }
      }
    }
  } else {
    for (int piece = 0; piece < 4; ++piece) {
      const int half = piece / 2, from = piece % 2 * 16;
      const Lines4 first = TransposeRows(column, Format::kNibbles + half * 64 + from);
      const Lines4 second = TransposeRows(column, Format::kNibbles + half * 64 + 32 + from);
      const Lines4 high = TransposeRows(column, Format::kHigh + half * 32 + from);
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i) {
          VU8 stream[4];
          JoinStreams(first.line[e][i], second.line[e][i], high.line[e][i], stream);
          for (int s = 0; s < 4; ++s) store(stream[s], half * 128 + s * 32 + from + e * 4, i);
        }
      }
    }
  }
}

// Words of scales that stand twice, in pairs of two groups.
template <int kGroups>
HWY_INLINE void PairScales(const float* twice, uint32_t* pairs) {
  const DU32 d;
  for (int pair = 0; pair < kGroups / 2; ++pair) {
    for (int i = 0; i < kLineVectors; ++i) {
      const auto* at = reinterpret_cast<const uint32_t*>(twice) + pair * 32 + i * kLanes;
      const auto one = hn::And(hn::LoadU(d, at), hn::Set(d, 0xffff)), other = hn::ShiftLeft<16>(hn::LoadU(d, at + 16));
      hn::StoreU(hn::Or(one, other), d, pairs + pair * 16 + i * kLanes);
    }
  }
}

template <class Format>
HWY_INLINE void PackPanel(void* dst, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  using At = KPanelAt<Format, kWordScales>;
  auto* panel = static_cast<uint8_t*>(dst);
  constexpr int kGroups = 256 / Format::kGroup, kSupers = kWordScales && Format::kHasMins ? 32 : 16;
  const At at(k);
  auto* mins = reinterpret_cast<uint32_t*>(panel + at.mins);
  auto* supers = reinterpret_cast<float*>(panel + at.supers);
  BlockColumns<Format> columns(src, src_stride, rows);
  for (int64_t b = 0; b < k / 256; ++b) {
    const BlockColumn column = columns.At(b);
    auto* scales = reinterpret_cast<float*>(panel + at.scales) + b * kGroups * 16;
    PackHeader<Format>(column, HeaderAt<kWordScales, false>{scales, mins + b * kGroups * 8, supers + b * kSupers});
    if constexpr (At::kScalesAgain) PairScales<kGroups>(scales, mins + b * kGroups * 8);
    ForCodes<Format>(
        column, [&](VU8 codes, int j, int i) { hn::StoreU(codes, DU8(), panel + (b * 64 + j / 4) * 64 + i * kBytes); });
  }
}

}  // namespace
}  // namespace quern::simd
