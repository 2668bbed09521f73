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

// How bytes of two blocks of 32 lie in vectors: of 64 bytes, one block behind the other. Of 32, first halves of both in
// the first vector, second halves in the second, so that the sum of the products of both has those of one block in its
// lower half, and of the other in its upper; but of q8_0, which needs no unpacking, a block to a vector.
constexpr int kInTwo = 64 / kBytes;
template <class Format>
constexpr bool kHalves = kBytes == 32 && Format::kBytes != Q8_0::kBytes;

#if HWY_MAX_BYTES == 32
// 16 bytes at `first`, then 16 at `second` or anything.
template <bool kTwo>
HWY_INLINE __m256i Join(const uint8_t* first, const uint8_t* second) {
  const auto load = [](const uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
  const __m256i joined = _mm256_castsi128_si256(load(first));
  if constexpr (kTwo) return _mm256_inserti128_si256(joined, load(second), 1);
  return joined;
}
#endif

// Bytes of two blocks at `first` and `second`; of one, then anything.
template <class Format, bool kTwo>
HWY_INLINE void LoadTwo(const uint8_t* first, const uint8_t* second, VU8* two) {
#if HWY_MAX_BYTES == 64
  const auto load = [](const uint8_t* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); };
  two[0].raw = _mm512_castsi256_si512(load(first));
  if constexpr (kTwo) two[0].raw = _mm512_inserti64x4(two[0].raw, load(second), 1);
#else
  if constexpr (!kHalves<Format>) {
    two[0] = hn::LoadU(DU8(), first);
    two[1] = kTwo ? hn::LoadU(DU8(), second) : two[0];
    return;
  }
  QUERN_UNROLL
  for (int i = 0; i < kInTwo; ++i) two[i].raw = Join<kTwo>(first + i * 16, second + i * 16);
#endif
}

#if HWY_MAX_BYTES == 32
// Adds the fifth bits of two blocks to their codes. Eight bytes are given the byte that holds their bits, and each
// keeps its own of them, which makes it 16: the sign of the eighth byte turns its -16.
template <class Format, bool kTwo>
HWY_INLINE void AddFifth(const uint8_t* block, VU8* codes) {
  static_assert(Format::kHigh + 16 <= Format::kBytes);  // what lies behind the bits is read with them
  const uint8_t* const bits = block + Format::kHigh;
  const __m256i fifth = Join<kTwo>(bits, bits + Format::kBytes);
  const __m256i own = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i sixteen = _mm256_set1_epi64x(static_cast<int64_t>(0xf010101010101010));
  QUERN_UNROLL
  for (int i = 0; i < kInTwo; ++i) {
    const int64_t low = 0x0202020202020202 * i, high = low + 0x0101010101010101;
    const __m256i each = _mm256_shuffle_epi8(fifth, _mm256_setr_epi64x(low, high, low, high));
    codes[i].raw = _mm256_or_si256(codes[i].raw, _mm256_sign_epi8(sixteen, _mm256_and_si256(each, own)));
  }
}
#endif

// Quants of two blocks (or of one, then anything), q8_0 with their sign.
template <class Format, bool kTwo>
HWY_INLINE void TwoBlocks(const uint8_t* block, VU8* quants) {
  const uint8_t* const second = block + Format::kBytes;
  if constexpr (Format::kBytes == Q8_0::kBytes) {
    LoadTwo<Format, kTwo>(block + 2, second + 2, quants);
  } else {
#if HWY_MAX_BYTES == 64
    const auto load = [](const uint8_t* at) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + Format::kNibbles));
    };
    // Both halves of a 256-bit half hold the block's 16 bytes: the first gives the low nibbles, the second the high.
    __m512i packed = _mm512_broadcast_i32x4(load(block));
    if constexpr (kTwo) packed = _mm512_mask_broadcast_i32x4(packed, 0xff00, load(second));
#if defined(__GFNI__)
    const __m512i matrix =
        _mm512_setr_epi64(0x0102040800000000, 0x0102040800000000, 0x1020408000000000, 0x1020408000000000,
                          0x0102040800000000, 0x0102040800000000, 0x1020408000000000, 0x1020408000000000);
    __m512i codes = _mm512_gf2p8affine_epi64_epi8(packed, matrix, 0);
#else
    const __m512i shift =
        _mm512_setr_epi64(0, 0, 0x0004000400040004, 0x0004000400040004, 0, 0, 0x0004000400040004, 0x0004000400040004);
    __m512i codes = _mm512_and_si512(_mm512_srlv_epi16(packed, shift), _mm512_set1_epi8(15));
#endif
    if constexpr (Format::kHigh != 0) {
      uint64_t fifth = LoadScalar<uint32_t>(block + Format::kHigh);
      if constexpr (kTwo) fifth |= static_cast<uint64_t>(LoadScalar<uint32_t>(second + Format::kHigh)) << 32;
      codes = _mm512_mask_add_epi8(codes, fifth, codes, _mm512_set1_epi8(16));
    }
    quants[0].raw = codes;
#else
    const __m256i packed = Join<kTwo>(block + Format::kNibbles, second + Format::kNibbles);
    const __m256i nibble = _mm256_set1_epi8(15);
    quants[0].raw = _mm256_and_si256(packed, nibble);
    quants[1].raw = _mm256_and_si256(_mm256_srli_epi16(packed, 4), nibble);
    if constexpr (Format::kHigh != 0) AddFifth<Format, kTwo>(block, quants);
#endif
    QUERN_UNROLL
    for (int i = 0; i < kInTwo; ++i) quants[i] = Quants<Format>(DU8(), quants[i]);
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
  const __m128i usual = _mm_slli_epi32(_mm_sub_epi32(powers, _mm_set1_epi32(1)), 23);
  const __m128i small = _mm_sllv_epi32(_mm_set1_epi32(0x200000), powers);
  return _mm_castsi128_ps(_mm_blendv_epi8(usual, small, _mm_cmplt_epi32(powers, _mm_set1_epi32(2))));
}

#endif

}  // namespace
}  // namespace quern::simd
