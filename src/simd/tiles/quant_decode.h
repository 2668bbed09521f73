// Decoding of weight blocks to f32, 32 elements at a time: what the exact dots and the unpacks share.
//
//   BlockHeader<Q4_K> header(block);                     // once a block: a scale and a bias for each group
//   VF32 values[kVectors32];
//   Decode32(header, block, s, values);                  // elements 32 s .. 32 s + 31: code * scale + bias
//
// Bit for bit the values of src/kir/decode.h: code * scale is exact in f32 for every format but those with scales of
// f32 (kSingles), and so is the bias, so one fused or unfused multiply-add rounds once, like the reference. (A zero may
// differ in sign.)
#pragma once

#include "simd/tiles/quant_block32.h"
#include "simd/tiles/quant_codes.h"
#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

constexpr int kVectors32 = 32 / kLanes;

template <class Format>
struct BlockHeader;

// Of blocks of 32.
template <class Format>
  requires(Format::kElements == 32)
struct BlockHeader<Format> {
  float scale, added = 0;
  HWY_INLINE explicit BlockHeader(const uint8_t* block) : scale(BlockScale<Format>(block)) {
    if constexpr (Format::kAdded && !Format::kSingles) added = HalfToFloat(LoadScalar<uint16_t>(block + 2));
    if constexpr (Format::kAdded && Format::kSingles) added = LoadScalar<float>(block + 4);
  }
};

template <>
struct BlockHeader<Q4_K> {
  alignas(32) float scale[8];
  alignas(32) float bias[8];
  HWY_INLINE explicit BlockHeader(const uint8_t* block) {
    const SixBits six = UnpackSixBits(block + Q4_K::kScales);
    Scale(six.scales, HalfToFloat(LoadScalar<uint16_t>(block)), scale);
    Scale(six.mins, -HalfToFloat(LoadScalar<uint16_t>(block + 2)), bias);
  }
  HWY_INLINE static void Scale(uint64_t bytes, float by, float* to) {
    const hn::CappedTag<float, 8> d;
    const hn::RebindToSigned<decltype(d)> di;
    const hn::Rebind<uint8_t, decltype(d)> du8;
    alignas(8) uint8_t at[8];
    StoreScalar(bytes, at);
    for (size_t i = 0; i < 8; i += hn::MaxLanes(d)) {
      const auto value = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(du8, at + i)));
      hn::Store(hn::Mul(value, hn::Set(d, by)), d, to + i);
    }
  }
};

template <>
struct BlockHeader<Q5_K> : BlockHeader<Q4_K> {
  using BlockHeader<Q4_K>::BlockHeader;
};

// kCount numbers, by a half.
template <int kCount>
HWY_INLINE void ScaleBytes(const int8_t* bytes, float by, float* to) {
  const hn::CappedTag<float, kCount> d;
  const hn::RebindToSigned<decltype(d)> di;
  for (size_t i = 0; i < kCount; i += hn::MaxLanes(d)) {
    const auto value = hn::PromoteTo(di, hn::LoadU(hn::Rebind<int8_t, decltype(d)>(), bytes + i));
    hn::Store(hn::Mul(hn::ConvertTo(d, value), hn::Set(d, by)), d, to + i);
  }
}

template <>
struct BlockHeader<Q6_K> {
  alignas(64) float scale[16];
  HWY_INLINE explicit BlockHeader(const uint8_t* block) {
    ScaleBytes<16>(reinterpret_cast<const int8_t*>(block + Q6_K::kScales),
                   HalfToFloat(LoadScalar<uint16_t>(block + Q6_K::kD)), scale);
  }
};

template <>
struct BlockHeader<Q3_K> {
  alignas(64) float scale[16];
  HWY_INLINE explicit BlockHeader(const uint8_t* block) {
    alignas(16) int8_t scales[16];
    hn::Store(ScalesOfThreeBits(block), D16I(), scales);
    ScaleBytes<16>(scales, HalfToFloat(LoadScalar<uint16_t>(block + Q3_K::kD)), scale);
  }
};

template <>
struct BlockHeader<Q2_K> {
  alignas(64) float scale[16], bias[16];
  HWY_INLINE explicit BlockHeader(const uint8_t* block) {
    const D16 d;
    const auto both = hn::LoadU(d, block + Q2_K::kScales);
    alignas(16) int8_t bytes[16];
    hn::Store(hn::BitCast(D16I(), hn::And(both, hn::Set(d, 15))), D16I(), bytes);
    ScaleBytes<16>(bytes, HalfToFloat(LoadScalar<uint16_t>(block + Q2_K::kD)), scale);
    hn::Store(hn::BitCast(D16I(), hn::ShiftRight<4>(both)), D16I(), bytes);
    ScaleBytes<16>(bytes, -HalfToFloat(LoadScalar<uint16_t>(block + Q2_K::kD + 2)), bias);
  }
};

template <>
struct BlockHeader<IQ4_XS> {
  alignas(32) float scale[8];
  HWY_INLINE explicit BlockHeader(const uint8_t* block) {
    alignas(8) int8_t scales[8];
    hn::Store(ScalesOfLevels(block), hn::FixedTag<int8_t, 8>(), scales);
    ScaleBytes<8>(scales, HalfToFloat(LoadScalar<uint16_t>(block)), scale);
  }
};

template <class Format>
  requires(Format::kGrid)
struct BlockHeader<Format> {
  alignas(64) float scale[16];
  HWY_INLINE explicit BlockHeader(const uint8_t* block) {
    alignas(16) int8_t scales[16];
    GridBlock<Format>::Scales(block, scales);
    ScaleBytes<256 / Format::kGroup>(scales, GridBlock<Format>::D(block), scale);
  }
};

template <class Format>
  requires(Format::kGroup == 256)
struct BlockHeader<Format> {
  float scale;
  HWY_INLINE explicit BlockHeader(const uint8_t* block) : scale(ScaleOfBlock<Format>(block)) {}
};

// Vector v of the 32 codes at `at`, as f32.
template <typename Code>
HWY_INLINE VF32 CodesAt(const Code* at, int v) {
  return hn::ConvertTo(DF32(), hn::PromoteTo(DI32(), hn::LoadU(hn::Rebind<Code, DI32>(), at + v * kLanes)));
}

// `codes` of a block of 32, less the format's zero or as levels, scaled.
template <class Format>
HWY_INLINE VF32 Scaled(const BlockHeader<Format>& header, VF32 codes) {
  const VF32 scale = hn::Set(DF32(), header.scale), added = hn::Set(DF32(), header.added);
  if constexpr (!Format::kAdded) return hn::Mul(codes, scale);
  if constexpr (Format::kSingles) return hn::Add(hn::Mul(codes, scale), added);
  return hn::MulAdd(codes, scale, added);
}

#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
// What the 16 codes of four bits stand for before they are scaled, as f32.
template <class Format>
struct FloatLevels {
  alignas(64) float at[16];
  constexpr FloatLevels() : at() {
    for (int i = 0; i < 16; ++i) at[i] = Format::kLevels != nullptr ? Format::kLevels[i] : i - Format::kOffset;
  }
};

// A block of 32 nibbles has 16 values: they are scaled once, and each code is looked up by the four low bits of a lane.
template <class Format>
HWY_INLINE void LookUp32(const BlockHeader<Format>& header, const uint8_t* block, VF32* values) {
  static constexpr FloatLevels<Format> kLevels{};
  const __m512 levels = Scaled(header, hn::Load(DF32(), kLevels.at)).raw;
  const __m512i codes =
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + Format::kNibbles)));
  values[0].raw = _mm512_permutexvar_ps(codes, levels);
  values[1].raw = _mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4), levels);
}
constexpr bool kLooksUp = true;
#else
template <class Format>
void LookUp32(const BlockHeader<Format>& header, const uint8_t* block, VF32* values);
constexpr bool kLooksUp = false;
#endif

template <class Format>
  requires(Format::kElements == 32)
HWY_INLINE void Decode32(const BlockHeader<Format>& header, const uint8_t* block, int, VF32* values) {
  if constexpr (Bytes<Format>) {
    using Code = std::conditional_t<Format::kOffset == 0, uint8_t, int8_t>;
    for (int v = 0; v < kVectors32; ++v)
      values[v] = Scaled(header, CodesAt(reinterpret_cast<const Code*>(block + Format::kQuants), v));
  } else if constexpr (kLooksUp && Format::kHigh == 0) {
    LookUp32(header, block, values);
  } else {
    const D16 d;
    hn::Vec<D16> quants[2];
    BlockQuants<Format, Format::kLevels != nullptr>(d, block, quants);
    alignas(32) int8_t codes[32];
    for (int i = 0; i < 2; ++i) {
      if constexpr (Format::kLevels == nullptr) quants[i] = hn::Sub(quants[i], hn::Set(d, Format::kOffset));
      hn::Store(hn::BitCast(D16I(), quants[i]), D16I(), codes + 16 * i);
    }
    for (int v = 0; v < kVectors32; ++v) values[v] = Scaled(header, CodesAt(codes, v));
  }
}

template <class Format>
  requires(Format::kHasMins && Format::kGroup == 32)
HWY_INLINE void Decode32(const BlockHeader<Format>& header, const uint8_t* block, int s, VF32* values) {
  const D16 d;
  alignas(32) uint8_t codes[32];
  for (int i = 0; i < 32; i += 16) {
    const auto packed = hn::LoadU(d, block + Format::kNibbles + s / 2 * 32 + i);
    auto code = s % 2 == 0 ? hn::And(packed, hn::Set(d, 15)) : hn::ShiftRight<4>(packed);
    if constexpr (Format::kCodes == 32) {
      const auto bit = hn::Set(d, static_cast<uint8_t>(1 << s));  // of each byte, for sub-block s
      const auto high = hn::TestBit(hn::LoadU(d, block + Format::kHigh + i), bit);
      code = hn::Or(code, hn::IfThenElseZero(high, hn::Set(d, 16)));
    }
    hn::Store(code, d, codes + i);
  }
  const VF32 scale = hn::Set(DF32(), header.scale[s]), bias = hn::Set(DF32(), header.bias[s]);
  for (int v = 0; v < kVectors32; ++v) values[v] = hn::MulAdd(CodesAt(codes, v), scale, bias);
}

HWY_INLINE void Decode32(const BlockHeader<Q6_K>& header, const uint8_t* block, int s, VF32* values) {
  const D16 d;
  const hn::FixedTag<uint16_t, 8> d16;
  alignas(32) uint8_t codes[32];
  const int half = s / 4, stream = s % 4;
  for (int i = 0; i < 32; i += 16) {
    const auto low = hn::LoadU(d, block + half * 64 + stream % 2 * 32 + i);
    const auto nibble = stream < 2 ? hn::And(low, hn::Set(d, 15)) : hn::ShiftRight<4>(low);
    const auto high =
        hn::BitCast(d16, hn::LoadU(d, block + 128 + half * 32 + i));  // two bits a stream, to bits 4 and 5
    const auto moved = stream == 0   ? hn::ShiftLeft<4>(high)
                       : stream == 1 ? hn::ShiftLeft<2>(high)
                       : stream == 2 ? high
                                     : hn::ShiftRight<2>(high);
    hn::Store(hn::Or(nibble, hn::And(hn::BitCast(d, moved), hn::Set(d, 0x30))), d, codes + i);
  }
  for (int v = 0; v < kVectors32; ++v) {
    const VF32 scale = hn::Set(DF32(), header.scale[s * 2 + v * kLanes / 16]);
    values[v] = hn::Mul(hn::Sub(CodesAt(codes, v), hn::Set(DF32(), 32)), scale);
  }
}

// Elements 32 s .. 32 s + 31 of q2_K, q3_K and tq2_0.
template <class Format>
  requires(!Digits<Format>)
HWY_INLINE void PairsOf32(const uint8_t* block, int s, uint8_t* codes) {
  const D16 d;
  const hn::FixedTag<uint16_t, 8> d16;
  for (int i = 0; i < 32; i += 16) {
    const auto pairs = hn::BitCast(d16, hn::LoadU(d, block + Format::kPairs + s / 4 * 32 + i));
    auto code = hn::And(hn::BitCast(d, hn::ShiftRightSame(pairs, s % 4 * 2)), hn::Set(d, 3));
    if constexpr (Format::kCodes == 8) {
      const auto third = hn::TestBit(hn::LoadU(d, block + Format::kHigh + i), hn::Set(d, static_cast<uint8_t>(1 << s)));
      code = hn::Or(code, hn::IfThenElseZero(third, hn::Set(d, 4)));
    }
    hn::Store(code, d, codes + i);
  }
}

// q2_K and q3_K.
template <class Format>
  requires(Format::kCodes < 16 && Format::kGroup == 16)
HWY_INLINE void Decode32(const BlockHeader<Format>& header, const uint8_t* block, int s, VF32* values) {
  alignas(32) uint8_t codes[32];
  PairsOf32<Format>(block, s, codes);
  for (int v = 0; v < kVectors32; ++v) {
    const int group = s * 2 + v * kLanes / 16;
    const VF32 scale = hn::Set(DF32(), header.scale[group]), code = CodesAt(codes, v);
    if constexpr (Format::kHasMins) {
      values[v] = hn::MulAdd(code, scale, hn::Set(DF32(), header.bias[group]));
    } else {
      values[v] = hn::Mul(hn::Sub(code, hn::Set(DF32(), Format::kOffset)), scale);
    }
  }
}

// Of one scale a block.
template <class Format>
  requires(Format::kGroup == 256)
HWY_INLINE void Decode32(const BlockHeader<Format>& header, const uint8_t* block, int s, VF32* values) {
  const VF32 scale = hn::Set(DF32(), header.scale);
  if constexpr (Bytes<Format>) {
    const auto* quants = reinterpret_cast<const int8_t*>(block + Format::kQuants) + s * 32;
    for (int v = 0; v < kVectors32; ++v) values[v] = hn::Mul(CodesAt(quants, v), scale);
    return;
  }
  alignas(32) uint8_t codes[32];
  if constexpr (Digits<Format>) {
    hn::Vec<D32> digits[kGridParts];
    DigitsOf32(block, s, digits);
    for (int i = 0; i < kGridParts; ++i) hn::Store(digits[i], D32(), codes + i * kGridBytes);
  } else if constexpr (!Bytes<Format>) {
    PairsOf32<Format>(block, s, codes);
  }
  const VF32 offset = hn::Set(DF32(), Format::kOffset);
  for (int v = 0; v < kVectors32; ++v) values[v] = hn::Mul(hn::Sub(CodesAt(codes, v), offset), scale);
}

HWY_INLINE void Decode32(const BlockHeader<IQ4_XS>& header, const uint8_t* block, int s, VF32* values) {
  const D16 d;
  const auto packed = hn::LoadU(d, block + IQ4_XS::kNibbles + s * 16);
  alignas(32) int8_t levels[32];
  hn::Store(hn::BitCast(D16I(), Quants<IQ4_XS>(d, hn::And(packed, hn::Set(d, 15)))), D16I(), levels);
  hn::Store(hn::BitCast(D16I(), Quants<IQ4_XS>(d, hn::ShiftRight<4>(packed))), D16I(), levels + 16);
  const VF32 scale = hn::Set(DF32(), header.scale[s]);
  for (int v = 0; v < kVectors32; ++v) values[v] = hn::Mul(CodesAt(levels, v), scale);
}

template <class Format>
  requires(Format::kGrid)
HWY_INLINE void Decode32(const BlockHeader<Format>& header, const uint8_t* block, int s, VF32* values) {
  const D32 d;
  hn::Vec<D32> codes[kGridParts];
  GridCodes<Format>(block, s, codes);
  alignas(32) int8_t levels[32];
  for (int i = 0; i < kGridParts; ++i)
    hn::Store(hn::BitCast(hn::RebindToSigned<D32>(), Quants<Format>(d, codes[i])), hn::RebindToSigned<D32>(),
              levels + i * kGridBytes);
  for (int v = 0; v < kVectors32; ++v) {
    const int group = Format::kGroup == 32 ? s : 2 * s + v * kLanes / 16;
    values[v] = hn::Mul(CodesAt(levels, v), hn::Set(DF32(), header.scale[group]));
  }
}

}  // namespace
}  // namespace quern::simd
