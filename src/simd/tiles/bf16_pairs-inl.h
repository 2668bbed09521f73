// Products of pairs of bf16: a lane holds two neighbours along k, the first in its low half, and takes part with both.
//
// One instruction where the level has it: that adds the two products, exact in f32, to the sum one after the other or
// together, whichever the processor does, and treats denormals as 0. Elsewhere the halves become floats, two FMAs a
// lane.
#pragma once

#include "simd/tiles/dot_float-inl.h"

namespace {

#if defined(__AVX512BF16__) && HWY_MAX_BYTES == 64
using Pairs = VU;

HWY_INLINE Pairs PairsOf(VU words) { return words; }

// sum + the products of both neighbours of a and b.
HWY_INLINE VF AddPairs(Pairs a, Pairs b, VF sum) {
  return VF{_mm512_dpbf16_ps(sum.raw, __builtin_bit_cast(__m512bh, a.raw), __builtin_bit_cast(__m512bh, b.raw))};
}
#else
struct Pairs {
  VF first, second;
};

HWY_INLINE Pairs PairsOf(VU words) {
  return {hn::BitCast(kF32, hn::ShiftLeft<16>(words)), hn::BitCast(kF32, hn::And(words, hn::Set(kU32, 0xffff0000u)))};
}

HWY_INLINE VF AddPairs(Pairs a, Pairs b, VF sum) {
  return hn::MulAdd(a.second, b.second, hn::MulAdd(a.first, b.first, sum));
}
#endif

// As many pairs as a vector has.
HWY_INLINE Pairs LoadPairs(const BF16* p) { return PairsOf(hn::LoadU(kU32, reinterpret_cast<const uint32_t*>(p))); }

// The first `count` elements (0 < count < 2 * kLanes), the others zero.
HWY_INLINE Pairs LoadPairsPart(const BF16* p, int64_t count) {
#if HWY_MAX_BYTES == 64
  const hn::Repartition<uint16_t, F32> d;
  return PairsOf(hn::BitCast(kU32, hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, &p->bits)));
#else
  typedef uint64_t Words __attribute__((vector_size(HWY_MAX_BYTES)));
  Words words;
#pragma clang loop unroll(full)
  for (int i = 0; i < HWY_MAX_BYTES / 8; ++i) {
    words[i] = count > 4 * i ? HalfBits(&p->bits + 4 * i, count - 4 * i) : 0;
  }
  return PairsOf(__builtin_bit_cast(VU, words));
#endif
}

// Two elements at any address.
HWY_INLINE uint32_t LoadPair(const void* p) {
  uint32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}

// What a step of MultiplyTile adds: the products of two neighbours of x and the pairs of b.
struct PairTerm {
  using Sum = VF;
  static HWY_INLINE Pairs Broadcast(const char* x) { return PairsOf(hn::Set(kU32, LoadPair(x))); }
  static HWY_INLINE VF Add(Pairs x, Pairs b, VF sum) { return AddPairs(x, b, sum); }
};

// Of the last of an odd k, whose neighbour b has as 0.
struct SingleTerm {
  using Sum = VF;
  static HWY_INLINE Pairs Broadcast(const char* x) {
    uint16_t first;
    __builtin_memcpy(&first, x, sizeof first);
    return PairsOf(hn::Set(kU32, first));
  }
  static HWY_INLINE VF Add(Pairs x, Pairs b, VF sum) { return AddPairs(x, b, sum); }
};

}  // namespace
