// Codes of K-quant blocks as bytes, put together from their nibbles and the bits above: what the dots and the panel
// packs share.
#pragma once

#include "simd/tiles/quant_block32.h"
#include "simd/tiles/quant_grid.h"
#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

// Of a chunk of q4_K or q5_K, packed bytes of which give two vectors of codes: of the low nibbles (sub-block 2 chunk)
// and of the high ones (2 chunk + 1). high: q5_K, the bytes of fifth bits that belong to them, bit s for sub-block s.
template <class Format>
HWY_INLINE void JoinChunk(VU8 packed, VU8 high, int chunk, VU8& first, VU8& second) {
  const DU8 d;
  first = hn::And(packed, hn::Set(d, 15));
  second = hn::ShiftRight<4>(packed);
  if constexpr (Format::kCodes == 32) {
    const auto bits = hn::ShiftRightSame(hn::BitCast(hn::ScalableTag<uint16_t>(), high), 2 * chunk);
    const VU8 fifth = hn::Set(d, 16);
    first = hn::Or(first, hn::And(hn::BitCast(d, hn::ShiftLeft<4>(bits)), fifth));
    second = hn::Or(second, hn::And(hn::BitCast(d, hn::ShiftLeft<3>(bits)), fifth));
  }
}

// Of one half of a q6_K block, 128 elements in four streams of 32: bytes of its first and second 32 of nibbles and of
// its high bits give a vector of codes of each stream.
HWY_INLINE void JoinStreams(VU8 first, VU8 second, VU8 high, VU8 (&stream)[4]) {
  const DU8 d;
  const auto top = hn::BitCast(hn::ScalableTag<uint16_t>(), high);
  const VU8 two_bits = hn::Set(d, 0x30), four_bits = hn::Set(d, 15);
  const auto bits = [&](auto moved) { return hn::And(hn::BitCast(d, moved), two_bits); };
  stream[0] = hn::Or(hn::And(first, four_bits), bits(hn::ShiftLeft<4>(top)));
  stream[1] = hn::Or(hn::And(second, four_bits), bits(hn::ShiftLeft<2>(top)));
  stream[2] = hn::Or(hn::ShiftRight<4>(first), bits(top));
  stream[3] = hn::Or(hn::ShiftRight<4>(second), bits(hn::ShiftRight<2>(top)));
}

// Of one half of a q2_K, q3_K or tq2_0 block, 128 elements in four streams of 32: bytes of pairs of bits give a vector
// of codes of each stream. high: q3_K, the bytes of third bits that belong to them, bit 4 half + s for stream s.
template <class Format>
HWY_INLINE void JoinPairs(VU8 packed, VU8 high, int half, VU8 (&stream)[4]) {
  const DU8 d;
  const auto words = hn::BitCast(hn::ScalableTag<uint16_t>(), packed);
  const VU8 three = hn::Set(d, 3);
  stream[0] = hn::And(packed, three);
  stream[1] = hn::And(hn::BitCast(d, hn::ShiftRight<2>(words)), three);
  stream[2] = hn::And(hn::BitCast(d, hn::ShiftRight<4>(words)), three);
  stream[3] = hn::ShiftRight<6>(packed);
  if constexpr (Format::kCodes == 8) {
    const auto bits = hn::ShiftRightSame(hn::BitCast(hn::ScalableTag<uint16_t>(), high), 4 * half);
    const VU8 third = hn::Set(d, 4);
    stream[0] = hn::Or(stream[0], hn::And(hn::BitCast(d, hn::ShiftLeft<2>(bits)), third));
    stream[1] = hn::Or(stream[1], hn::And(hn::BitCast(d, hn::ShiftLeft<1>(bits)), third));
    stream[2] = hn::Or(stream[2], hn::And(hn::BitCast(d, bits), third));
    stream[3] = hn::Or(stream[3], hn::And(hn::BitCast(d, hn::ShiftRight<1>(bits)), third));
  }
}

// Of tq1_0: a byte is the fraction, of 256, that its digits of base three make. Here it is 128 less, so that digits are
// comparisons of signed bytes; times three, it is still 128 less.
template <class V>
HWY_INLINE V FromZero(V bytes) {
  return hn::Xor(bytes, hn::Set(hn::DFromV<V>(), 0x80));
}

// The bytes of what is behind the first digits. Additions that the compiler cannot see through: it would make one
// multiplication of several, for which bytes have no instruction.
template <class V>
HWY_INLINE V BehindDigits(V bytes, int digits) {
  for (int i = 0; i < digits; ++i) {
    V twice = hn::Add(bytes, bytes);
#if HWY_ARCH_X86
    asm("" : "+v"(twice.raw));
#elif HWY_ARCH_ARM_A64
    asm("" : "+w"(twice.raw));
#endif
    bytes = hn::Add(bytes, twice);
  }
  return bytes;
}

template <class V>
HWY_INLINE V FirstDigit(V bytes) {
  const hn::RebindToSigned<hn::DFromV<V>> d;
  const auto number = hn::BitCast(d, bytes);
  const auto above = [&](int8_t third) { return hn::VecFromMask(d, hn::Gt(number, hn::Set(d, third))); };  // or -1
  return hn::BitCast(hn::DFromV<V>(), hn::Neg(hn::Add(above(85 - 128), above(170 - 128))));  // thirds of 256
}

// The 32 digits from element 32 s on: 32 bytes hold five times 32, 16 bytes five times 16, four bytes four times 4.
HWY_INLINE void DigitsOf32(const uint8_t* block, int s, hn::Vec<D32>* codes) {
  const D32 d;
  if (s < 5) {
    for (int i = 0; i < kGridParts; ++i)
      codes[i] = FirstDigit(BehindDigits(FromZero(hn::LoadU(d, block + i * kGridBytes)), s));
    return;
  }
  const D16 d16;
  const auto run = [&](int n) {
    if (n < 5) return BehindDigits(FromZero(hn::LoadU(d16, block + 32)), n);
    const hn::Repartition<uint16_t, D16> words;
    alignas(16) static constexpr uint16_t kPowers[8] = {1, 1, 3, 3, 9, 9, 27, 27};
    const auto powers = hn::Load(words, kPowers), low = hn::Set(words, 255);
    const auto four = hn::BitCast(words, hn::Set(hn::Repartition<uint32_t, D16>(), LoadScalar<uint32_t>(block + 48)));
    const auto even = hn::And(hn::Mul(four, powers), low), odd = hn::Mul(hn::AndNot(low, four), powers);
    return FromZero(hn::BitCast(d16, hn::Or(even, odd)));
  };
  const auto first = run(2 * s - 10), second = run(2 * s - 9);
#if HWY_MAX_BYTES == 16
  codes[0] = FirstDigit(first);
  codes[1] = FirstDigit(second);
#else
  codes[0] = FirstDigit(hn::Combine(d, second, first));
#endif
}

// The scales of the 16 groups of a q3_K block.
HWY_INLINE hn::Vec<D16I> ScalesOfThreeBits(const uint8_t* block) {
  const uint32_t a = LoadScalar<uint32_t>(block + Q3_K::kScales), b = LoadScalar<uint32_t>(block + Q3_K::kScales + 4);
  const uint32_t high = LoadScalar<uint32_t>(block + Q3_K::kScales + 8);
  const auto four = [&](uint32_t low, int shift) { return (low & 0x0f0f0f0f) | ((high >> shift & 0x03030303) << 4); };
  alignas(16) const uint32_t words[4] = {four(a, 0), four(b, 2), four(a >> 4, 4), four(b >> 4, 6)};
  return hn::BitCast(D16I(), hn::Sub(hn::Load(D16(), reinterpret_cast<const uint8_t*>(words)), hn::Set(D16(), 32)));
}

// The scales of the 8 groups of an iq4_xs block.
HWY_INLINE hn::Vec<hn::FixedTag<int8_t, 8>> ScalesOfLevels(const uint8_t* block) {
  // Nibbles, and pairs of bits, to bytes.
  uint64_t low = LoadScalar<uint32_t>(block + IQ4_XS::kScales + 2),
           high = LoadScalar<uint16_t>(block + IQ4_XS::kScales);
  low = (low | low << 16) & 0x0000ffff0000ffff;
  low = (low | low << 8) & 0x00ff00ff00ff00ff;
  low = (low | low << 4) & 0x0f0f0f0f0f0f0f0f;
  high = (high | high << 24) & 0x000000ff000000ff;
  high = (high | high << 12) & 0x000f000f000f000f;
  high = (high | high << 6) & 0x0303030303030303;
  const hn::FixedTag<int8_t, 8> d;
  return hn::Sub(hn::BitCast(d, hn::Set(hn::FixedTag<uint64_t, 1>(), low | high << 4)), hn::Set(d, 32));
}

// Whether codes are whole bytes with their sign.
template <class Format>
concept Bytes = Format::kCodes == 256 && Format::kLevels == nullptr;

// Of formats with one scale a block: what it multiplies.
template <class Format>
HWY_INLINE float ScaleOfBlock(const uint8_t* block) {
  if constexpr (Bytes<Format>) return LoadScalar<float>(block + Format::kD);
  return HalfToFloat(LoadScalar<uint16_t>(block + Format::kD));
}

// Whether codes are digits of base three.
template <class Format>
concept Digits = Format::kCodes == 3;

// Elements that are decoded at once: a chunk of q4_K or q5_K, two groups of iq4_xs and of grids, as many digits, half a
// block of the others.
template <class Format>
constexpr int kPart = Format::kGroup == 32 || Format::kGrid || Digits<Format> ? 64 : 128;

// The codes of part `part` of a block, in element order; of levels, these with their signs.
template <class Format>
  requires(Format::kGrid || Digits<Format>)
HWY_INLINE void SplitCodes(const uint8_t* block, int part, VU8* codes) {
  hn::Vec<D32> first[kGridParts], second[kGridParts];
  if constexpr (Format::kGrid) {
    GridCodes<Format>(block, 2 * part, first);
    GridCodes<Format>(block, 2 * part + 1, second);
  } else {
    DigitsOf32(block, 2 * part, first);
    DigitsOf32(block, 2 * part + 1, second);
  }
#if HWY_MAX_BYTES == 64
  codes[0] = Quants<Format>(DU8(), hn::Combine(DU8(), second[0], first[0]));
#else
  QUERN_UNROLL
  for (int i = 0; i < kGridParts; ++i) {
    codes[i] = Quants<Format>(DU8(), first[i]);
    codes[kGridParts + i] = Quants<Format>(DU8(), second[i]);
  }
#endif
}

template <class Format>
  requires(Bytes<Format>)
HWY_INLINE void SplitCodes(const uint8_t* block, int part, VU8* codes) {
  QUERN_UNROLL
  for (int i = 0; i < kPart<Format> / kBytes; ++i)
    codes[i] = hn::LoadU(DU8(), block + Format::kQuants + part * kPart<Format> + i * kBytes);
}

#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64

// Two 256-bit halves of one pattern each.
HWY_INLINE __m512i Halves(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
// The same 32 bytes in both halves.
HWY_INLINE __m512i Twice(const uint8_t* bytes) {
  return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes)));
}

// The codes of part `part` of a block, in element order; of levels, these with their signs.
template <class Format>
  requires(Format::kHasMins && Format::kGroup == 32)
HWY_INLINE void SplitCodes(const uint8_t* block, int part, VU8* codes) {
  const __m512i twice = Twice(block + Format::kNibbles + part * 32);
#if defined(__GFNI__)
  // One 8x8 bit matrix a qword: the low half keeps bits 0..3, the high half moves bits 4..7 down.
  const __m512i matrix = Halves(_mm256_set1_epi64x(0x0102040800000000), _mm256_set1_epi64x(0x1020408000000000));
  __m512i joined = _mm512_gf2p8affine_epi64_epi8(twice, matrix, 0);
#else
  const __m512i shift = Halves(_mm256_setzero_si256(), _mm256_set1_epi16(4));
  __m512i joined = _mm512_and_si512(_mm512_srlv_epi16(twice, shift), _mm512_set1_epi8(15));
#endif
  if constexpr (Format::kCodes == 32) {
    const __m512i bit = Halves(_mm256_set1_epi8(static_cast<char>(1 << (2 * part))),
                               _mm256_set1_epi8(static_cast<char>(2 << (2 * part))));
    const __mmask64 fifth = _mm512_test_epi8_mask(Twice(block + Format::kHigh), bit);
    joined = _mm512_mask_add_epi8(joined, fifth, joined, _mm512_set1_epi8(16));
  }
  codes[0] = VU8{joined};
}

template <class Format>
  requires(Format::kLevels != nullptr && !Format::kGrid)
HWY_INLINE void SplitCodes(const uint8_t* block, int part, VU8* codes) {
  const auto* at = reinterpret_cast<const __m256i*>(block + Format::kNibbles + part * 32);
  const __m512i packed = _mm512_zextsi256_si512(_mm256_loadu_si256(at));
  const __m512i each = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 1, 0, 1, 2, 3, 2, 3), packed);
  const __m512i shifted = _mm512_srlv_epi64(each, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4));
  codes[0] = Quants<Format>(DU8(), VU8{_mm512_and_si512(shifted, _mm512_set1_epi8(15))});
}

template <class Format>
  requires(Format::kCodes < 16 && !Digits<Format>)
HWY_INLINE void SplitCodes(const uint8_t* block, int part, VU8* codes) {
  const __m512i pairs = Twice(block + Format::kPairs + part * 32), three = _mm512_set1_epi8(3);
  const auto stream = [&](int s) {
    const __m512i shift =
        Halves(_mm256_set1_epi16(static_cast<int16_t>(2 * s)), _mm256_set1_epi16(static_cast<int16_t>(2 * s + 2)));
    __m512i joined = _mm512_and_si512(_mm512_srlv_epi16(pairs, shift), three);
    if constexpr (Format::kCodes == 8) {
      const __m512i bit = Halves(_mm256_set1_epi8(static_cast<char>(1 << (4 * part + s))),
                                 _mm256_set1_epi8(static_cast<char>(2 << (4 * part + s))));
      const __mmask64 third = _mm512_test_epi8_mask(Twice(block + Format::kHigh), bit);
      joined = _mm512_mask_add_epi8(joined, third, joined, _mm512_set1_epi8(4));
    }
    return VU8{joined};
  };
  codes[0] = stream(0);
  codes[1] = stream(2);
}

template <class Format>
  requires(Format::kCodes == 64)
HWY_INLINE void SplitCodes(const uint8_t* block, int part, VU8* codes) {
  const __m512i nibbles = _mm512_loadu_si512(block + Format::kNibbles + part * 64);
  const __m512i top = Twice(block + Format::kHigh + part * 32);
#if defined(__GFNI__)
  // Bits 0..1 of a byte go to bits 4..5 for elements 0..31, 2..3 for 32..63, 4..5 for 64..95, 6..7 for 96..127.
  const auto move = [&](int64_t first, int64_t second) {
    const __m512i matrices = Halves(_mm256_set1_epi64x(first), _mm256_set1_epi64x(second));
    return _mm512_gf2p8affine_epi64_epi8(top, matrices, 0);
  };
  const __m512i top0 = move(0x0000000001020000, 0x0000000004080000);
  const __m512i top1 = move(0x0000000010200000, 0x0000000040800000);
  const __m512i high_nibbles = _mm512_gf2p8affine_epi64_epi8(nibbles, _mm512_set1_epi64(0x1020408000000000), 0);
#else
  const __m512i two_bits = _mm512_set1_epi8(0x30);
  const __m512i left = Halves(_mm256_set1_epi16(4), _mm256_set1_epi16(2));
  const __m512i right = Halves(_mm256_setzero_si256(), _mm256_set1_epi16(2));
  const __m512i top0 = _mm512_and_si512(_mm512_sllv_epi16(top, left), two_bits);
  const __m512i top1 = _mm512_and_si512(_mm512_srlv_epi16(top, right), two_bits);
  const __m512i high_nibbles = _mm512_and_si512(_mm512_srli_epi16(nibbles, 4), _mm512_set1_epi8(15));
#endif
  codes[0] = VU8{_mm512_ternarylogic_epi64(nibbles, _mm512_set1_epi8(15), top0, 0xea)};  // (nibbles & 15) | top0
  codes[1] = VU8{_mm512_or_si512(high_nibbles, top1)};
}

#else

// The codes of part `part` of a block, in element order; of levels, these with their signs.
template <class Format>
  requires(Format::kLevels != nullptr && !Format::kGrid)
HWY_INLINE void SplitCodes(const uint8_t* block, int part, VU8* codes) {
  const D16 d16;
  QUERN_UNROLL
  for (int i = 0; i < 2; ++i) {
    const auto packed = hn::LoadU(d16, block + Format::kNibbles + part * 32 + i * 16);
    const auto low = hn::And(packed, hn::Set(d16, 15)), high = hn::ShiftRight<4>(packed);
#if HWY_MAX_BYTES == 32
    codes[i] = Quants<Format>(DU8(), hn::Combine(DU8(), high, low));
#else
    codes[2 * i] = Quants<Format>(DU8(), low);
    codes[2 * i + 1] = Quants<Format>(DU8(), high);
#endif
  }
}

template <class Format>
  requires(Format::kLevels == nullptr && !Digits<Format> && !Bytes<Format>)
HWY_INLINE void SplitCodes(const uint8_t* block, int part, VU8* codes) {
  const DU8 d;
  constexpr int kStep = 32 / kBytes;
  QUERN_UNROLL
  for (int i = 0; i < kStep; ++i) {
    if constexpr (Format::kCodes < 16) {
      VU8 high = hn::Undefined(d), stream[4];
      if constexpr (Format::kCodes == 8) high = hn::LoadU(d, block + Format::kHigh + i * kBytes);
      JoinPairs<Format>(hn::LoadU(d, block + Format::kPairs + part * 32 + i * kBytes), high, part, stream);
      QUERN_UNROLL
      for (int s = 0; s < 4; ++s) codes[s * kStep + i] = stream[s];
    } else if constexpr (Format::kHasMins) {
      VU8 high = hn::Undefined(d);
      if constexpr (Format::kCodes == 32) high = hn::LoadU(d, block + Format::kHigh + i * kBytes);
      JoinChunk<Format>(hn::LoadU(d, block + Format::kNibbles + part * 32 + i * kBytes), high, part, codes[i],
                        codes[kStep + i]);
    } else {
      const uint8_t* low = block + Format::kNibbles + part * 64 + i * kBytes;
      const VU8 high = hn::LoadU(d, block + Format::kHigh + part * 32 + i * kBytes);
      VU8 stream[4];
      JoinStreams(hn::LoadU(d, low), hn::LoadU(d, low + 32), high, stream);
      QUERN_UNROLL
      for (int s = 0; s < 4; ++s) codes[s * kStep + i] = stream[s];
    }
  }
}

#endif

}  // namespace
}  // namespace quern::simd
