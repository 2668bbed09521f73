// Decoding of weight blocks to f32, 32 elements at a time: what the exact dots and the unpacks share.
//
//   BlockHeader<Q4_K> header(block);                     // once a block: a scale and a bias for each group
//   VF32 values[kVectors32];
//   Decode32(header, block, s, values);                  // elements 32 s .. 32 s + 31: code * scale + bias
//
// Bit for bit the values of src/kir/decode.h: code * scale is exact in f32 for every format, and so is the bias, so one
// fused or unfused multiply-add rounds once, like the reference. (A zero may differ in sign.)
#pragma once

#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

constexpr int kVectors32 = 32 / kLanes;

template <class Format>
struct BlockHeader;

template <>
struct BlockHeader<Q8_0> {
  float scale;
  HWY_INLINE explicit BlockHeader(const uint8_t* block) : scale(HalfToFloat(LoadScalar<uint16_t>(block))) {}
};

template <>
struct BlockHeader<Q4_0> {
  float scale;
  HWY_INLINE explicit BlockHeader(const uint8_t* block) : scale(HalfToFloat(LoadScalar<uint16_t>(block))) {}
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

template <>
struct BlockHeader<Q6_K> {
  alignas(64) float scale[16];
  HWY_INLINE explicit BlockHeader(const uint8_t* block) {
    const DF32 d;
    const VF32 by = hn::Set(d, HalfToFloat(LoadScalar<uint16_t>(block + 208)));
    for (int i = 0; i < 16; i += kLanes) {
      const auto bytes = hn::LoadU(hn::Rebind<int8_t, DF32>(), reinterpret_cast<const int8_t*>(block + 192) + i);
      hn::Store(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(DI32(), bytes)), by), d, scale + i);
    }
  }
};

// Vector v of the 32 codes at `at`, as f32.
template <typename Code>
HWY_INLINE VF32 CodesAt(const Code* at, int v) {
  return hn::ConvertTo(DF32(), hn::PromoteTo(DI32(), hn::LoadU(hn::Rebind<Code, DI32>(), at + v * kLanes)));
}

HWY_INLINE void Decode32(const BlockHeader<Q8_0>& header, const uint8_t* block, int, VF32* values) {
  const VF32 scale = hn::Set(DF32(), header.scale);
  for (int v = 0; v < kVectors32; ++v) {
    values[v] = hn::Mul(CodesAt(reinterpret_cast<const int8_t*>(block + 2), v), scale);
  }
}

using D16 = hn::FixedTag<uint8_t, 16>;

HWY_INLINE void Decode32(const BlockHeader<Q4_0>& header, const uint8_t* block, int, VF32* values) {
  const D16 d;
  alignas(32) uint8_t codes[32];
  const auto packed = hn::LoadU(d, block + 2);
  hn::Store(hn::And(packed, hn::Set(d, 15)), d, codes);
  hn::Store(hn::ShiftRight<4>(packed), d, codes + 16);
  const VF32 scale = hn::Set(DF32(), header.scale), bias = hn::Set(DF32(), -8 * header.scale);
  for (int v = 0; v < kVectors32; ++v) values[v] = hn::MulAdd(CodesAt(codes, v), scale, bias);
}

template <class Format>
  requires(Format::kHasMins)
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

}  // namespace
}  // namespace quern::simd
