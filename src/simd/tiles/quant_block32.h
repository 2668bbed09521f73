// Blocks of 32 elements: their scale, and their codes as bytes in element order. What dots, products, packs and exact
// decoding of these formats share; a format is a row of constants in quant_layout.h.
#pragma once

#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

using D16 = hn::FixedTag<uint8_t, 16>;
using D16I = hn::FixedTag<int8_t, 16>;

// Whether codes are multiplied as bytes with their sign; else kOffset more than what they stand for, without one.
template <class Format>
constexpr bool kSignedQuants = Format::kCodes == 256;

// The levels of a format as bytes with their sign, or kOffset more.
template <class Format, bool kSigned>
struct LevelTable {
  alignas(16) uint8_t at[16];
  constexpr LevelTable() : at() {
    for (int i = 0; i < 16; ++i) {
      at[i] = static_cast<uint8_t>(Format::kLevels[i] + (kSigned ? 0 : Format::kOffset));
    }
  }
};

// What codes as they lie in a block or a panel are multiplied as. Of q8_0, a panel has them without a sign.
template <class Format, bool kSigned = kSignedQuants<Format>, class D>
HWY_INLINE hn::Vec<D> Quants(D d, hn::Vec<D> codes) {
  if constexpr (Format::kLevels != nullptr) {
    static constexpr LevelTable<Format, kSigned> kTable{};
    return hn::TableLookupBytes(hn::LoadDup128(d, kTable.at), codes);
  } else {
    return codes;
  }
}

// Adds their fifth bits, which are at `bits`, to codes of four.
template <class Format, class D>
HWY_INLINE hn::Vec<D> WithFifth(D d, hn::Vec<D> codes, const uint8_t* bits) {
  if constexpr (Format::kHigh == 0) return codes;
  return hn::Or(codes, hn::IfThenElseZero(hn::LoadMaskBits(d, bits), hn::Set(d, 16)));
}

HWY_INLINE float PowerOfByte(uint32_t byte) {
  return __builtin_bit_cast(float, byte < 2 ? 0x200000u << byte : (byte - 1) << 23);
}

template <class Format>
HWY_INLINE float BlockScale(const uint8_t* block) {
  if constexpr (Format::kPower) return PowerOfByte(block[0]);
  if constexpr (Format::kSingles) return LoadScalar<float>(block);
  return HalfToFloat(LoadScalar<uint16_t>(block));
}

// The quants of a block of nibbles, in `kVectors` vectors: at least 16 bytes each, at most 32.
template <class Format, bool kSigned = kSignedQuants<Format>, class D>
HWY_INLINE void BlockQuants(D d, const uint8_t* block, hn::Vec<D>* quants) {
  if constexpr (hn::MaxLanes(d) == 32) {
    // Both halves hold the block's 16 bytes: the first gives the low nibbles, the second the high.
    alignas(32) static constexpr uint32_t kShifts[8] = {0, 0, 0, 0, 4, 4, 4, 4};
    const hn::Repartition<uint32_t, D> d32;
    const auto packed = hn::BitCast(d32, hn::LoadDup128(d, block + Format::kNibbles));
    const auto codes = hn::And(hn::BitCast(d, hn::Shr(packed, hn::Load(d32, kShifts))), hn::Set(d, 15));
    quants[0] = Quants<Format, kSigned>(d, WithFifth<Format>(d, codes, block + Format::kHigh));
  } else {
    const D16 d16;
    const auto packed = hn::LoadU(d16, block + Format::kNibbles);
    const auto low = hn::And(packed, hn::Set(d16, 15)), high = hn::ShiftRight<4>(packed);
    quants[0] = Quants<Format, kSigned>(d, WithFifth<Format>(d, low, block + Format::kHigh));
    quants[1] = Quants<Format, kSigned>(d, WithFifth<Format>(d, high, block + Format::kHigh + 2));
  }
}

#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 32

// How bytes of a few blocks lie in vectors, so that one vector has the sums of their products. Of nibbles first halves
// of all are in the first vector and second halves in the second: each block has a quarter of the sums or, with AVX2, a
// half. Of q8_0, which needs no unpacking, blocks are as they lie: two in a vector or, with AVX2, one.
template <class Format>
constexpr bool kHalves = Format::kBytes != Q8_0::kBytes;
template <class Format>
constexpr int kBlocks = kHalves<Format> ? kBytes / 16 : 2;
template <class Format>
constexpr int kVectors = kBlocks<Format> * 32 / kBytes;
// Whether bytes are multiplied with their sign: where one instruction adds up four products, one side has none.
template <class Format>
constexpr bool kWithSign = kSignedQuants<Format> && !kByteDot;

HWY_INLINE __m128i Load16(const uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

// `kCount` pieces of 16 bytes, one at `at` and each `stride` behind another; then zeros, which cost nothing: what a
// cast leaves undefined clang 19 fills by shuffles.
template <int kCount>
HWY_INLINE __m256i JoinTwo(const uint8_t* at, int64_t stride) {
  const __m256i first = _mm256_zextsi128_si256(Load16(at));
  if constexpr (kCount > 1) return _mm256_inserti128_si256(first, Load16(at + stride), 1);
  return first;
}
template <int kCount>
HWY_INLINE VU8 Join(const uint8_t* at, int64_t stride) {
#if HWY_MAX_BYTES == 64
  const __m512i two = _mm512_zextsi256_si512(JoinTwo<kCount>(at, stride));
  if constexpr (kCount > 2) return VU8{_mm512_inserti64x4(two, JoinTwo<kCount - 2>(at + 2 * stride, stride), 1)};
  return VU8{two};
#else
  return VU8{JoinTwo<kCount>(at, stride)};
#endif
}

// `kCount` pieces of 32 bytes, as q8_0 lies in vectors.
template <int kCount>
HWY_INLINE void LoadWhole(const uint8_t* at, int64_t stride, VU8* vectors) {
#if HWY_MAX_BYTES == 64
  const auto load = [](const uint8_t* piece) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(piece)); };
  vectors[0].raw = _mm512_zextsi256_si512(load(at));
  if constexpr (kCount > 1) vectors[0].raw = _mm512_inserti64x4(vectors[0].raw, load(at + stride), 1);
#else
  vectors[0] = hn::LoadU(DU8(), at);
  vectors[1] = kCount > 1 ? hn::LoadU(DU8(), at + stride) : vectors[0];
#endif
}

// The bytes of `kCount` blocks of activations, one behind the other, as quants of `Format` lie in vectors.
template <class Format, int kCount>
HWY_INLINE void LoadActivations(const uint8_t* at, VU8* vectors) {
  if constexpr (!kHalves<Format>) return LoadWhole<kCount>(at, 32, vectors);
#if HWY_MAX_BYTES == 64
  if constexpr (kCount == 4) {
    const __m512i two = _mm512_loadu_si512(at), others = _mm512_loadu_si512(at + 64);
    vectors[0].raw = _mm512_shuffle_i64x2(two, others, 0x88);
    vectors[1].raw = _mm512_shuffle_i64x2(two, others, 0xdd);
    return;
  }
#endif
  vectors[0] = Join<kCount>(at, 32);
  vectors[1] = Join<kCount>(at + 16, 32);
}

#if HWY_MAX_BYTES == 64
// The fifth bits of `kCount` of two blocks at `at`, where they lie, then anything.
template <int kCount>
HWY_INLINE __m256i FifthOfTwo(const uint8_t* at) {
  if constexpr (kCount == 1) return _mm256_zextsi128_si256(_mm_cvtsi32_si128(LoadScalar<int32_t>(at)));
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
#endif

// Adds the fifth bits of `kCount` blocks to their codes.
template <class Format, int kCount>
HWY_INLINE void AddFifth(const uint8_t* block, VU8* codes) {
  const uint8_t* const bits = block + Format::kHigh;
#if HWY_MAX_BYTES == 64 && defined(__GFNI__) && defined(__AVX512VBMI__)
  // Byte 3 of a matrix of eight bytes makes bit 4 of what it is multiplied with: from byte i of 1, 2, .. 128 its bit i.
  const __m512i each = _mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201));
  __m512i fifth = _mm512_zextsi256_si512(FifthOfTwo<kCount>(bits));
  if constexpr (kCount > 2) fifth = _mm512_inserti64x4(fifth, FifthOfTwo<kCount - 2>(bits + 2 * Format::kBytes), 1);
  QUERN_UNROLL
  for (int half = 0; half < 2; ++half) {
    const auto place = [&](int block, int byte) {
      return static_cast<int64_t>(block / 2 * 32 + block % 2 * Format::kBytes + half * 2 + byte) << 24;
    };
    const __m512i from = _mm512_setr_epi64(place(0, 0), place(0, 1), place(1, 0), place(1, 1), place(2, 0), place(2, 1),
                                           place(3, 0), place(3, 1));
    const __m512i matrices = _mm512_maskz_permutexvar_epi8(0x0808080808080808, from, fifth);
    codes[half].raw = _mm512_or_si512(codes[half].raw, _mm512_gf2p8affine_epi64_epi8(each, matrices, 0));
  }
#elif HWY_MAX_BYTES == 64
  QUERN_UNROLL
  for (int half = 0; half < 2; ++half) {
    uint64_t fifth = 0;
    for (int i = kCount - 1; i >= 0; --i)
      fifth = fifth << 16 | LoadScalar<uint16_t>(bits + i * Format::kBytes + half * 2);
    codes[half].raw = _mm512_mask_add_epi8(codes[half].raw, fifth, codes[half].raw, _mm512_set1_epi8(16));
  }
#else
  // Eight bytes are given the byte that holds their bits, and each keeps its own of them, which makes it 16: the sign
  // of the eighth byte turns its -16.
  static_assert(Format::kHigh + 16 <= Format::kBytes);  // what lies behind the bits is read with them
  const __m256i fifth = JoinTwo<kCount>(bits, Format::kBytes);
  const __m256i own = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i sixteen = _mm256_set1_epi64x(static_cast<int64_t>(0xf010101010101010));
  QUERN_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int64_t low = 0x0202020202020202 * half, high = low + 0x0101010101010101;
    const __m256i each = _mm256_shuffle_epi8(fifth, _mm256_setr_epi64x(low, high, low, high));
    codes[half].raw = _mm256_or_si256(codes[half].raw, _mm256_sign_epi8(sixteen, _mm256_and_si256(each, own)));
  }
#endif
}

// The quants of `kCount` blocks of weights, those of q8_0 with their sign.
template <class Format, int kCount>
HWY_INLINE void LoadWeights(const uint8_t* block, VU8* quants) {
  if constexpr (!kHalves<Format>) {
    LoadWhole<kCount>(block + Format::kQuants, Format::kBytes, quants);
  } else {
    const VU8 packed = Join<kCount>(block + Format::kNibbles, Format::kBytes), nibble = hn::Set(DU8(), 15);
    quants[0] = hn::And(packed, nibble);
#if HWY_MAX_BYTES == 64 && defined(__GFNI__)
    quants[1].raw = _mm512_gf2p8affine_epi64_epi8(packed.raw, _mm512_set1_epi64(0x1020408000000000), 0);
#else
    quants[1] = hn::ShiftRight<4>(packed);
#endif
    if constexpr (Format::kHigh != 0) AddFifth<Format, kCount>(block, quants);
    QUERN_UNROLL
    for (int half = 0; half < 2; ++half) quants[half] = Quants<Format, kWithSign<Format>>(DU8(), quants[half]);
  }
}

// Halves at byte `at` of `kCount` of four blocks, as f32; zero for those that are not there.
template <class Format, int kCount>
HWY_INLINE __m128 HalvesOf(const uint8_t* block, int at) {
  uint64_t halves = 0;
  for (int i = kCount - 1; i >= 0; --i) halves = halves << 16 | LoadScalar<uint16_t>(block + i * Format::kBytes + at);
  return _mm_cvtph_ps(_mm_cvtsi64_si128(static_cast<int64_t>(halves)));
}

// The scales of `kCount` of four blocks, then of any.
template <class Format, int kCount>
HWY_INLINE __m128 ScalesOf(const uint8_t* block) {
  if constexpr (!Format::kPower) return HalvesOf<Format, kCount>(block, 0);
  uint32_t bytes = 0;
  for (int i = kCount - 1; i >= 0; --i) bytes = bytes << 8 | block[i * Format::kBytes];
  const __m128i powers = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(static_cast<int32_t>(bytes)));
  // Of the two least powers, which are subnormal, the first number is not more than zero; the second is at most theirs.
  const __m128i usual = _mm_slli_epi32(_mm_sub_epi32(powers, _mm_set1_epi32(1)), 23);
  const __m128i small = _mm_min_epi32(_mm_sllv_epi32(_mm_set1_epi32(0x200000), powers), _mm_set1_epi32(0x400000));
  return _mm_castsi128_ps(_mm_max_epi32(usual, small));
}

#endif

}  // namespace
}  // namespace quern::simd
