// Loads of f32, f16 and bf16 rows as f32 vectors, whole or partial, for the float tiles.
//
// LoadPart never touches memory past the elements it is asked for: weights are mapped from a file, whose last row may
// end at the end of a page. f16 conversion is exact for subnormals, infinities and NaN, also while the processor
// flushes denormals (kernels run with FTZ and DAZ): it must not pass a subnormal half through a denormal float.
#pragma once

#include "simd/math/vector.h"

namespace {

using F16 = uint16_t;  // the bits of an IEEE binary16
struct BF16 {
  uint16_t bits;  // the upper half of those of a float
};
using U16 = hn::Rebind<uint16_t, F32>;
constexpr U16 kU16;
constexpr int kLanes = HWY_MAX_BYTES / 4;
constexpr bool kManyRegisters = HWY_MAX_BYTES == 64;  // 32 vector registers instead of 16

HWY_INLINE VF HalfToFloat(hn::Vec<U16> half) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  const VU bits = hn::PromoteTo(kU32, half);
  const VU magnitude = hn::And(bits, hn::Set(kU32, 0x7fff));
  const VU shifted = hn::ShiftLeft<13>(magnitude);
  const VU rebias = hn::Set(kU32, 112u << 23);
  VU normal = hn::Add(shifted, rebias);
  // Infinity and NaN: the exponent 31 becomes 255, twice the step of the others.
  const auto special = hn::RebindMask(kU32, hn::Gt(hn::BitCast(kI32, magnitude), hn::Set(kI32, 0x7bff)));
  normal = hn::Add(normal, hn::IfThenElseZero(special, rebias));
  // Subnormal: 2^-14 * (1 + m/1024) - 2^-14 is exact and has no denormal on the way.
  const VF tiny = hn::Sub(hn::BitCast(kF32, hn::Add(shifted, hn::Set(kU32, 113u << 23))), Const(0x1p-14f));
  const auto subnormal = hn::RebindMask(kF32, hn::Lt(hn::BitCast(kI32, magnitude), hn::Set(kI32, 0x400)));
  const VF value = hn::IfThenElse(subnormal, tiny, hn::BitCast(kF32, normal));
  return hn::Or(value, hn::BitCast(kF32, hn::ShiftLeft<16>(hn::Sub(bits, magnitude))));
#else
  return hn::PromoteTo(kF32, hn::BitCast(hn::Rebind<hwy::float16_t, F32>(), half));
#endif
}

HWY_INLINE VF UpperHalf(hn::Vec<U16> bits) { return hn::BitCast(kF32, hn::ShiftLeft<16>(hn::PromoteTo(kU32, bits))); }

HWY_INLINE VF LoadFloat(const float* p) { return hn::LoadU(kF32, p); }
HWY_INLINE VF LoadFloat(const F16* p) { return HalfToFloat(hn::LoadU(kU16, p)); }
HWY_INLINE VF LoadFloat(const BF16* p) { return UpperHalf(hn::LoadU(kU16, &p->bits)); }

// The 0 to 4 halves at p, lowest first.
HWY_INLINE uint64_t HalfBits(const F16* p, int64_t count) {
  uint64_t bits = 0;
  if (count >= 4) {
    __builtin_memcpy(&bits, p, 8);
    return bits;
  }
  for (int64_t i = count - 1; i >= 0; --i) bits = bits << 16 | p[i];
  return bits;
}

// The first `count` elements (0 < count < kLanes), the others zero.
HWY_INLINE VF LoadPart(const float* p, int64_t count) {
#if HWY_MAX_BYTES == 16
  return FromRaw(Vec{p[0], count > 1 ? p[1] : 0.0f, count > 2 ? p[2] : 0.0f, 0.0f});
#else
  return hn::MaskedLoad(hn::FirstN(kF32, static_cast<size_t>(count)), kF32, p);
#endif
}

HWY_INLINE hn::Vec<U16> LoadPartBits(const uint16_t* p, int64_t count) {
#if HWY_MAX_BYTES == 16
  return hn::BitCast(kU16, hn::Set(hn::Simd<uint64_t, 1, 0>(), HalfBits(p, count)));
#elif HWY_MAX_BYTES == 32
  typedef uint64_t Pair __attribute__((vector_size(16)));
  const Pair bits = {HalfBits(p, count), count > 4 ? HalfBits(p + 4, count - 4) : 0};
  return __builtin_bit_cast(hn::Vec<U16>, bits);
#else
  return hn::MaskedLoad(hn::FirstN(kU16, static_cast<size_t>(count)), kU16, p);
#endif
}

HWY_INLINE VF LoadPart(const F16* p, int64_t count) { return HalfToFloat(LoadPartBits(p, count)); }
HWY_INLINE VF LoadPart(const BF16* p, int64_t count) { return UpperHalf(LoadPartBits(&p->bits, count)); }

// Whole vectors take the fast way; 0 < count.
template <typename T>
HWY_INLINE VF LoadUpTo(const T* p, int64_t count) {
  return count >= kLanes ? LoadFloat(p) : LoadPart(p, count);
}

// Stores the first `count` lanes (0 < count <= kLanes).
HWY_INLINE void StorePart(VF v, float* p, int64_t count) {
#if HWY_MAX_BYTES == 16
  if (count >= kLanes) return hn::StoreU(v, kF32, p);
  const Vec raw = ToRaw(v);
  p[0] = raw[0];
  if (count > 1) p[1] = raw[1];
  if (count > 2) p[2] = raw[2];
#else
  hn::BlendedStore(v, hn::FirstN(kF32, static_cast<size_t>(count)), kF32, p);
#endif
}

// Asks for a line into the second cache. Strided rows fall into few sets of the first, which would drop them before
// they are used; and lines under way to the first occupy its few miss buffers.
HWY_INLINE void Prefetch2(const char* p) { __builtin_prefetch(p, 0, 2); }

// Hides how a pointer was made, so that the compiler keeps it in a register instead of deriving it again in a loop.
template <typename T>
HWY_INLINE T* Opaque(T* p) {
  asm("" : "+r"(p));
  return p;
}

}  // namespace
