// Transposing rows of f32, f16 or bf16 into f32 columns: the kn32 panels of a GEMM and the key tile of an attention
// step.
//
//   PackRows(dst, dst_row, src, src_stride, rows, k): dst[p][j] = src[j][p] for p < k, j < 32; zero for j >= rows.
//
// A block of 4 (f32) or 8 (f16) columns is loaded as 128-bit pieces, piece b of vector i from row i + 4 b (or 8 b), and
// transposed inside the 128-bit pieces: each result is then a run of 16 (or 32) rows in order, without any shuffle
// across pieces.
#pragma once

#include "simd/tiles/dot_float-inl.h"

namespace {

constexpr int kPackRows = 32;
constexpr hn::Full128<uint8_t> kBytes16;

// The 16 bytes at p, p + step, p + 2 * step, ... as one vector.
HWY_INLINE VF LoadPieces(const char* p, int64_t step) {
  const hn::Full128<float> d;
  const auto piece = [&](int b) { return hn::LoadU(d, reinterpret_cast<const float*>(p + b * step)); };
#if HWY_MAX_BYTES == 16
  (void)step;
  return piece(0);
#elif HWY_MAX_BYTES == 32
  return hn::Combine(kF32, piece(1), piece(0));
#else
  const hn::Half<F32> dh;
  return hn::Combine(kF32, hn::Combine(dh, piece(3), piece(2)), hn::Combine(dh, piece(1), piece(0)));
#endif
}

// The low, or the high, pairs of lanes of both in every 128-bit piece: a0 a1 b0 b1, or a2 a3 b2 b3.
HWY_INLINE VF PairLower(VF a, VF b) {
  const hn::Repartition<double, F32> d;
  return hn::BitCast(kF32, hn::InterleaveLower(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}
HWY_INLINE VF PairUpper(VF a, VF b) {
  const hn::Repartition<double, F32> d;
  return hn::BitCast(kF32, hn::InterleaveUpper(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}

// dst[p][0 .. kLanes) for 4 columns p of kLanes rows.
HWY_INLINE void Transpose4(float* dst, int64_t dst_row, const float* src, int64_t src_stride) {
  const char* p = reinterpret_cast<const char*>(src);
  VF a[4];
#pragma clang loop unroll(full)
  for (int i = 0; i < 4; ++i) a[i] = LoadPieces(p + i * src_stride, 4 * src_stride);
  const VF low01 = hn::InterleaveLower(kF32, a[0], a[1]), high01 = hn::InterleaveUpper(kF32, a[0], a[1]);
  const VF low23 = hn::InterleaveLower(kF32, a[2], a[3]), high23 = hn::InterleaveUpper(kF32, a[2], a[3]);
  hn::StoreU(PairLower(low01, low23), kF32, dst);
  hn::StoreU(PairUpper(low01, low23), kF32, dst + dst_row);
  hn::StoreU(PairLower(high01, high23), kF32, dst + 2 * dst_row);
  hn::StoreU(PairUpper(high01, high23), kF32, dst + 3 * dst_row);
}

template <typename T>
HWY_INLINE VF FloatOf(hn::Vec<U16> bits) {
  if constexpr (__is_same(T, BF16)) return UpperHalf(bits);
  return HalfToFloat(bits);
}

// dst[p][0 .. 2 * kLanes) for 8 columns p of 2 * kLanes rows.
template <typename T>
HWY_INLINE void Transpose8(float* dst, int64_t dst_row, const T* src, int64_t src_stride) {
  const hn::Repartition<uint16_t, F32> d16;
  const char* p = reinterpret_cast<const char*>(src);
  const auto low = [&](VF a, VF b) {
    return hn::BitCast(kF32, hn::InterleaveLower(d16, hn::BitCast(d16, a), hn::BitCast(d16, b)));
  };
  const auto high = [&](VF a, VF b) {
    return hn::BitCast(kF32, hn::InterleaveUpper(d16, hn::BitCast(d16, a), hn::BitCast(d16, b)));
  };
  VF a[8], b[8];
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) a[i] = LoadPieces(p + i * src_stride, 8 * src_stride);
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; i += 2) {  // b[i], b[i + 1]: rows i and i + 1, columns 0-3 and 4-7
    b[i] = low(a[i], a[i + 1]);
    b[i + 1] = high(a[i], a[i + 1]);
  }
#pragma clang loop unroll(full)
  for (int half = 0; half < 2; ++half) {  // columns 4 * half ... + 3
    const VF low0123 = hn::InterleaveLower(kF32, b[half], b[2 + half]);
    const VF high0123 = hn::InterleaveUpper(kF32, b[half], b[2 + half]);
    const VF low4567 = hn::InterleaveLower(kF32, b[4 + half], b[6 + half]);
    const VF high4567 = hn::InterleaveUpper(kF32, b[4 + half], b[6 + half]);
    const VF columns[4] = {PairLower(low0123, low4567), PairUpper(low0123, low4567), PairLower(high0123, high4567),
                           PairUpper(high0123, high4567)};
#pragma clang loop unroll(full)
    for (int c = 0; c < 4; ++c) {
      const auto halves = hn::BitCast(d16, columns[c]);
      float* to = dst + (4 * half + c) * dst_row;
      hn::StoreU(FloatOf<T>(hn::LowerHalf(kU16, halves)), kF32, to);
      hn::StoreU(FloatOf<T>(hn::UpperHalf(kU16, halves)), kF32, to + kLanes);
    }
  }
}

// 32 rows, 16 columns: one cache line of f32 rows, half a line of f16 rows.
HWY_INLINE void Transpose32x16(float* dst, int64_t dst_row, const float* src, int64_t src_stride) {
#pragma clang loop unroll(disable)
  for (int j = 0; j < kPackRows; j += kLanes) {
    const float* rows = reinterpret_cast<const float*>(reinterpret_cast<const char*>(src) + j * src_stride);
#pragma clang loop unroll(full)
    for (int p = 0; p < 16; p += 4) Transpose4(dst + p * dst_row + j, dst_row, rows + p, src_stride);
  }
}

template <typename T>
HWY_INLINE void Transpose32x16(float* dst, int64_t dst_row, const T* src, int64_t src_stride) {
#pragma clang loop unroll(disable)
  for (int j = 0; j < kPackRows; j += 2 * kLanes) {
    const T* rows = reinterpret_cast<const T*>(reinterpret_cast<const char*>(src) + j * src_stride);
#pragma clang loop unroll(full)
    for (int p = 0; p < 16; p += 8) Transpose8(dst + p * dst_row + j, dst_row, rows + p, src_stride);
  }
}

// Up to 16 columns of up to 32 rows, by way of a zero-filled copy.
template <typename T>
HWY_NOINLINE void TransposeEdge(float* dst, int64_t dst_row, const T* src, int64_t src_stride, int64_t rows,
                                int64_t columns) {
  HWY_ALIGN float copy[kPackRows][16];
  HWY_ALIGN float turned[16][kPackRows];
  for (int64_t j = 0; j < kPackRows; ++j) {
    const T* row = reinterpret_cast<const T*>(reinterpret_cast<const char*>(src) + j * src_stride);
    for (int64_t p = 0; p < 16; p += kLanes) {
      const bool any = j < rows && p < columns;
      hn::Store(any ? LoadUpTo(row + p, columns - p) : hn::Zero(kF32), kF32, copy[j] + p);
    }
  }
  Transpose32x16(turned[0], kPackRows, copy[0], sizeof(copy[0]));
  for (int64_t p = 0; p < columns; ++p) {
    for (int64_t j = 0; j < kPackRows; j += kLanes) {
      hn::StoreU(hn::Load(kF32, Opaque(turned[p]) + j), kF32, dst + p * dst_row + j);  // Opaque: or it becomes memcpy
    }
  }
}

// A cache line of each row, put side by side first.
template <typename T>
HWY_INLINE void TransposeLines(float* dst, int64_t dst_row, const T* src, int64_t src_stride) {
  constexpr int kColumns = 64 / sizeof(T);
  HWY_ALIGN T lines[kPackRows][kColumns];
#pragma clang loop unroll(disable)
  for (int j = 0; j < kPackRows; ++j) {
    const char* row = reinterpret_cast<const char*>(src) + j * src_stride;
#pragma clang loop unroll(full)
    for (int at = 0; at < 64; at += 16)
      hn::StoreU(hn::LoadU(kBytes16, reinterpret_cast<const uint8_t*>(row + at)), kBytes16,
                 reinterpret_cast<uint8_t*>(lines[j]) + at);
  }
#pragma clang loop unroll(disable)
  for (int p = 0; p < kColumns; p += 16)
    Transpose32x16(dst + p * dst_row, dst_row, Opaque(lines[0]) + p, sizeof(lines[0]));
}

template <typename T>
HWY_INLINE void PackRows(float* dst, int64_t dst_row, const T* src, int64_t src_stride, int64_t rows, int64_t k) {
  int64_t p = 0;
  if (rows == kPackRows) {
    // Rows a multiple of 2 KiB apart share one or two sets of the first cache, which has no room for a line of each.
    constexpr int kLine = 64 / sizeof(T);
    const bool crowded = (src_stride & 2047) == 0;
    for (; crowded && p + kLine <= k; p += kLine) TransposeLines(dst + p * dst_row, dst_row, src + p, src_stride);
    for (; p + 16 <= k; p += 16) Transpose32x16(dst + p * dst_row, dst_row, src + p, src_stride);
  }
  for (; p < k; p += 16) {
    TransposeEdge(dst + p * dst_row, dst_row, src + p, src_stride, rows, k - p < 16 ? k - p : 16);
  }
}

// Rows of bf16 to words of two neighbours, the first in the low half: dst[p][j] for p < ceil(k / 2); zero where there
// is no element.
HWY_INLINE void PackPairs(uint32_t* dst, int64_t dst_row, const BF16* src, int64_t src_stride, int64_t rows,
                          int64_t k) {
  const auto row = [&](int64_t j) {
    return reinterpret_cast<const BF16*>(reinterpret_cast<const char*>(src) + j * src_stride);
  };
  // Pairs are moved as if they were floats: no lane is computed with.
  PackRows(reinterpret_cast<float*>(dst), dst_row, reinterpret_cast<const float*>(src), src_stride, rows, k / 2);
  for (int64_t j = 0; k % 2 != 0 && j < kPackRows; ++j) dst[k / 2 * dst_row + j] = j < rows ? row(j)[k - 1].bits : 0;
}

}  // namespace
