// Blocks whose codes are looked up in a grid (base/formats/grids.h): what formats of quant_layout.h that have one say
// of their fields, and their codes as bytes.
//
//   hn::Vec<D32> codes[kGridParts];
//   GridCodes<IQ2_XS>(block, s, codes);   // of elements 32 s .. 32 s + 31
//
// A grid has entries of 16 bits. Those of 32 elements are put side by side, 64 bits of codes of two bits or 128 of
// nibbles, and spread to bytes at once; then a bit for each element is put above its code.
#pragma once

#include "base/formats/grids.h"
#include "simd/tiles/quant_block32.h"
#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

// Entries of 32 elements: of two bits a code in `low`, of a nibble in both.
struct GridEntries {
  uint64_t low, high = 0;
};

HWY_INLINE GridEntries FourEntries(const uint16_t* grid, uint32_t a, uint32_t b, uint32_t c, uint32_t e) {
  return {grid[a] | uint64_t{grid[b]} << 16 | uint64_t{grid[c]} << 32 | uint64_t{grid[e]} << 48};
}

// Numbers of eight entries: bytes, and bits above these.
HWY_INLINE GridEntries EightEntries(const uint16_t* grid, const uint8_t* at, uint32_t ninth) {
  const auto number = [&](int i) { return at[i] | (ninth >> i & 1) << 8; };
  return {FourEntries(grid, number(0), number(1), number(2), number(3)).low,
          FourEntries(grid, number(4), number(5), number(6), number(7)).low};
}

// Bytes of seven bits, with an eighth each that makes the number of ones even.
HWY_INLINE uint32_t EvenSigns(uint32_t sevens) {
  uint32_t parity = sevens ^ sevens >> 4;
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return sevens | (parity & 0x01010101) << 7;
}
// The same of four times seven bits.
HWY_INLINE uint32_t SevenSigns(uint32_t bits) {
  return EvenSigns((bits & 127) | (bits << 1 & 127 << 8) | (bits << 2 & 127 << 16) | (bits << 3 & 127 << 24));
}

// The bytes of nibbles, twice each and one more, from low to high.
HWY_INLINE uint64_t OddNibbles(uint32_t nibbles) {
  uint64_t wide = nibbles;
  wide = (wide | wide << 16) & 0x0000ffff0000ffff;
  wide = (wide | wide << 8) & 0x00ff00ff00ff00ff;
  wide = (wide | wide << 4) & 0x0f0f0f0f0f0f0f0f;
  return wide << 1 | 0x0101010101010101;
}

// What of a block the formats have in places of their own:
//   Entries(block, s), Signs(block, s)   of elements 32 s .. 32 s + 31
//   Scales(block, scales)                of its groups
//   D(block)
template <class Format>
struct GridBlock;

// A half, and that of the levels' unit.
template <class Format>
struct GridScaled {
  static HWY_INLINE float D(const uint8_t* block) { return HalfToFloat(LoadScalar<uint16_t>(block)) * Format::kUnit; }
};

template <>
struct GridBlock<IQ2_XXS> : GridScaled<IQ2_XXS> {
  static HWY_INLINE GridEntries Entries(const uint8_t* block, int s) {
    const uint8_t* at = block + 2 + 8 * s;
    return FourEntries(formats::kIQ2XXSGrid, at[0], at[1], at[2], at[3]);
  }
  static HWY_INLINE uint32_t Signs(const uint8_t* block, int s) {
    return SevenSigns(LoadScalar<uint32_t>(block + 6 + 8 * s));
  }
  static HWY_INLINE void Scales(const uint8_t* block, int8_t* scales) {
    for (int s = 0; s < 8; ++s) scales[s] = static_cast<int8_t>((block[9 + 8 * s] >> 4) * 2 + 1);
  }
};

template <>
struct GridBlock<IQ2_XS> : GridScaled<IQ2_XS> {
  static HWY_INLINE GridEntries Entries(const uint8_t* block, int s) {
    const uint64_t words = LoadScalar<uint64_t>(block + 2 + 8 * s);
    const auto number = [&](int i) { return static_cast<uint32_t>(words >> 16 * i & 511); };
    return FourEntries(formats::kIQ2XSGrid, number(0), number(1), number(2), number(3));
  }
  static HWY_INLINE uint32_t Signs(const uint8_t* block, int s) {
    const uint64_t words = LoadScalar<uint64_t>(block + 2 + 8 * s);
    const auto signs = [&](int i) { return static_cast<uint32_t>(words >> (16 * i + 9) & 127) << 8 * i; };
    return EvenSigns(signs(0) | signs(1) | signs(2) | signs(3));
  }
  static HWY_INLINE void Scales(const uint8_t* block, int8_t* scales) {
    StoreScalar(OddNibbles(LoadScalar<uint32_t>(block + 66)), reinterpret_cast<uint8_t*>(scales));
    StoreScalar(OddNibbles(LoadScalar<uint32_t>(block + 70)), reinterpret_cast<uint8_t*>(scales + 8));
  }
};

template <>
struct GridBlock<IQ2_S> : GridScaled<IQ2_S> {
  static HWY_INLINE GridEntries Entries(const uint8_t* block, int s) {
    const uint8_t* at = block + 2 + 4 * s;
    const uint32_t high = block[66 + s];
    return FourEntries(formats::kIQ2SGrid, at[0] | (high << 8 & 768), at[1] | (high << 6 & 768),
                       at[2] | (high << 4 & 768), at[3] | (high << 2 & 768));
  }
  static HWY_INLINE uint32_t Signs(const uint8_t* block, int s) { return LoadScalar<uint32_t>(block + 34 + 4 * s); }
  static HWY_INLINE void Scales(const uint8_t* block, int8_t* scales) {
    StoreScalar(OddNibbles(LoadScalar<uint32_t>(block + 74)), reinterpret_cast<uint8_t*>(scales));
    StoreScalar(OddNibbles(LoadScalar<uint32_t>(block + 78)), reinterpret_cast<uint8_t*>(scales + 8));
  }
};

template <>
struct GridBlock<IQ3_XXS> : GridScaled<IQ3_XXS> {
  static HWY_INLINE GridEntries Entries(const uint8_t* block, int s) {
    return EightEntries(formats::kIQ3XXSGrid, block + 2 + 8 * s, 0);
  }
  static HWY_INLINE uint32_t Signs(const uint8_t* block, int s) {
    return SevenSigns(LoadScalar<uint32_t>(block + 66 + 4 * s));
  }
  static HWY_INLINE void Scales(const uint8_t* block, int8_t* scales) {
    for (int s = 0; s < 8; ++s) scales[s] = static_cast<int8_t>((block[69 + 4 * s] >> 4) * 2 + 1);
  }
};

template <>
struct GridBlock<IQ3_S> : GridScaled<IQ3_S> {
  static HWY_INLINE GridEntries Entries(const uint8_t* block, int s) {
    return EightEntries(formats::kIQ3SGrid, block + 2 + 8 * s, block[66 + s]);
  }
  static HWY_INLINE uint32_t Signs(const uint8_t* block, int s) { return LoadScalar<uint32_t>(block + 74 + 4 * s); }
  static HWY_INLINE void Scales(const uint8_t* block, int8_t* scales) {
    StoreScalar(OddNibbles(LoadScalar<uint32_t>(block + 106)), reinterpret_cast<uint8_t*>(scales));
  }
};

template <>
struct GridBlock<IQ1_S> : GridScaled<IQ1_S> {
  static HWY_INLINE GridEntries Entries(const uint8_t* block, int s) {
    const uint8_t* at = block + 2 + 4 * s;
    const uint32_t high = LoadScalar<uint16_t>(block + 34 + 2 * s);
    return FourEntries(formats::kIQ1Grid, at[0] | (high << 8 & 1792), at[1] | (high << 5 & 1792),
                       at[2] | (high << 2 & 1792), at[3] | (high >> 1 & 1792));
  }
  static HWY_INLINE uint32_t Signs(const uint8_t* block, int s) { return block[35 + 2 * s] < 128 ? 0 : 0xffffffff; }
  static HWY_INLINE void Scales(const uint8_t* block, int8_t* scales) {
    for (int s = 0; s < 8; ++s) scales[s] = static_cast<int8_t>((block[35 + 2 * s] >> 4 & 7) * 2 + 1);
  }
};

template <>
struct GridBlock<IQ1_M> {
  static HWY_INLINE GridEntries Entries(const uint8_t* block, int s) {
    const uint8_t* at = block + 4 * s;
    const uint32_t high = LoadScalar<uint16_t>(block + 32 + 2 * s);
    return FourEntries(formats::kIQ1Grid, at[0] | (high << 8 & 1792), at[1] | (high << 4 & 1792), at[2] | (high & 1792),
                       at[3] | (high >> 4 & 1792));
  }
  static HWY_INLINE uint32_t Signs(const uint8_t* block, int s) {
    const uint32_t high = LoadScalar<uint16_t>(block + 32 + 2 * s);
    return ((high >> 3 & 1) | (high << 1 & 256) | (high << 5 & 65536) | (high << 9 & 1 << 24)) * 255;
  }
  static HWY_INLINE void Scales(const uint8_t* block, int8_t* scales) {
    for (int part = 0; part < 4; ++part) {
      const uint32_t word = LoadScalar<uint16_t>(block + 48 + 2 * part);
      for (int i = 0; i < 4; ++i) scales[4 * part + i] = static_cast<int8_t>((word >> 3 * i & 7) * 2 + 1);
    }
  }
  static HWY_INLINE float D(const uint8_t* block) {
    const uint64_t words = LoadScalar<uint64_t>(block + 48);
    const uint64_t bits =
        (words >> 12 & 15) | (words >> 24 & 15 << 4) | (words >> 36 & 15 << 8) | (words >> 48 & 15 << 12);
    return HalfToFloat(static_cast<uint16_t>(bits)) * IQ1_M::kUnit;
  }
};

// Vectors that hold 32 codes.
constexpr int kGridBytes = kBytes < 32 ? kBytes : 32, kGridParts = 32 / kGridBytes;
using D32 = hn::FixedTag<uint8_t, kGridBytes>;

// For each of 32 elements: the byte of the entries that has its code, within 128 bits; which bits of it, in a low
// nibble and in a high one; the byte of its sign; which bit of that.
template <bool kNibbles>
struct GridPlaces {
  alignas(32) uint8_t byte[32], low[32], high[32], sign_byte[32], sign[32];
  constexpr GridPlaces() : byte(), low(), high(), sign_byte(), sign() {
    for (int i = 0; i < 32; ++i) {
      byte[i] = static_cast<uint8_t>(kNibbles ? i / 2 : i / 4);
      const int within = kNibbles ? i % 2 * 4 : i % 4 * 2, bits = kNibbles ? 15 : within % 4 == 0 ? 3 : 12;
      (within < 4 ? low : high)[i] = static_cast<uint8_t>(bits);
      sign_byte[i] = static_cast<uint8_t>(i / 8);
      sign[i] = static_cast<uint8_t>(1 << i % 8);
    }
  }
};
// Two bits of a nibble, the other two being zero.
alignas(16) constexpr uint8_t kPairOfNibble[16] = {0, 1, 2, 3, 1, 0, 0, 0, 2, 0, 0, 0, 3};

template <class Format>
HWY_INLINE void GridCodes(const uint8_t* block, int s, hn::Vec<D32>* codes) {
  static constexpr GridPlaces<Format::kNibbleGrid> kPlaces{};
  const D32 d;
  const GridEntries entries = GridBlock<Format>::Entries(block, s);
  const hn::Repartition<uint64_t, D32> d64;
  const auto bits = hn::BitCast(d, hn::Set(hn::Repartition<uint32_t, D32>(), GridBlock<Format>::Signs(block, s)));
  auto words = hn::Set(d64, entries.low);
  if constexpr (Format::kNibbleGrid) words = hn::InterleaveLower(d64, words, hn::Set(d64, entries.high));
  const auto packed = hn::BitCast(d, words);
  QUERN_UNROLL
  for (int part = 0; part < kGridParts; ++part) {
    const auto at = [&](const uint8_t* places) { return hn::Load(d, places + part * kGridBytes); };
    const auto bytes = hn::TableLookupBytes(packed, at(kPlaces.byte));
    auto code = hn::Or(hn::And(bytes, at(kPlaces.low)), hn::And(hn::ShiftRight<4>(bytes), at(kPlaces.high)));
    if constexpr (!Format::kNibbleGrid) code = hn::TableLookupBytes(hn::LoadDup128(d, kPairOfNibble), code);
    const auto sign = hn::TestBit(hn::TableLookupBytes(bits, at(kPlaces.sign_byte)), at(kPlaces.sign));
    codes[part] = hn::Or(code, hn::IfThenElseZero(sign, hn::Set(d, Format::kNibbleGrid ? 8 : 4)));
  }
}

}  // namespace
}  // namespace quern::simd
