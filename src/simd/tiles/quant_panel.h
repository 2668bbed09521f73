// Reading 16 rows of weight blocks side by side: what the panel packs share.
//
// A Lines4 is 16 bytes of each of 16 rows, transposed by dwords: line e holds dword e of row 0, 1, ... 15, 64 bytes,
// the unit in which a panel16 interleaves rows.
#pragma once

#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

constexpr int kLineVectors = 64 / kBytes;

// The blocks of one block column of 16 rows, by six pointers that stay in registers: row r is at [third[r / 3] +
// r % 3 * stride], which the addressing modes say.
class BlockColumn {
 public:
  HWY_INLINE BlockColumn(const uint8_t* first, int64_t stride) : stride_(stride) {
    QUERN_UNROLL
    for (int i = 0; i < 6; ++i) third_[i] = first + 3 * i * stride;
  }
  HWY_INLINE const uint8_t* Row(int r) const { return third_[r / 3] + r % 3 * stride_; }
  // The same where a loop over r stays one.
  HWY_INLINE const uint8_t* AnyRow(int r) const { return third_[0] + r * stride_; }

 private:
  const uint8_t* third_[6];
  int64_t stride_;
};

// Blocks of `rows` rows one behind the other, and of zeros for the rest of 16.
HWY_NOINLINE void CopyBlocks(const uint8_t* src, int64_t stride, int64_t rows, int bytes, uint8_t* copies) {
  for (int64_t r = 0; r < 16; ++r) {
    for (int i = 0; i < bytes; ++i) copies[r * bytes + i] = r < rows ? src[r * stride + i] : 0;
  }
}

// The block columns of up to 16 rows.
template <class Format>
class BlockColumns {
 public:
  HWY_INLINE BlockColumns(const void* src, int64_t stride, int64_t rows)
      : src_(static_cast<const uint8_t*>(src)), stride_(stride), rows_(rows) {}
  HWY_INLINE BlockColumn At(int64_t b) {
    const uint8_t* const first = src_ + b * Format::kBytes;
    int64_t rows = rows_;
    asm("" : "+r"(rows));  // might change: so that no loop over columns is made twice
    if (rows == 16) return {first, stride_};
    CopyBlocks(first, stride_, rows, Format::kBytes, copies_);
    return {copies_, Format::kBytes};
  }

 private:
  const uint8_t* src_;
  int64_t stride_, rows_;
  uint8_t copies_[16 * Format::kBytes];
};

struct Lines4 {
  VU8 line[4][kLineVectors];
};

// 16 bytes at `offset` of rows r, r + 4, r + 8, ... : one in each 128-bit block of the vector.
HWY_INLINE VU8 LoadEveryFourth(const BlockColumn& column, int r, int64_t offset) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
  const auto load = [&](int row) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(column.Row(row) + offset));
  };
  __m512i v = _mm512_castsi128_si512(load(r));
  v = _mm512_mask_broadcast_i32x4(v, 0x00f0, load(r + 4));
  v = _mm512_mask_broadcast_i32x4(v, 0x0f00, load(r + 8));
  return VU8{_mm512_mask_broadcast_i32x4(v, 0xf000, load(r + 12))};
#elif HWY_MAX_BYTES == 32
  const hn::Half<DU8> half;
  return hn::Combine(DU8(), hn::LoadU(half, column.Row(r + 4) + offset), hn::LoadU(half, column.Row(r) + offset));
#else
  return hn::LoadU(DU8(), column.Row(r) + offset);
#endif
}

HWY_INLINE Lines4 TransposeRows(const BlockColumn& column, int64_t offset) {
  const DU8 du8;
  const DU32 d;
  const DU64 du64;
  Lines4 lines;
  for (int i = 0; i < kLineVectors; ++i) {
    const int r = i * (kBytes / 4);
    const auto a = hn::BitCast(d, LoadEveryFourth(column, r, offset));
    const auto b = hn::BitCast(d, LoadEveryFourth(column, r + 1, offset));
    const auto c = hn::BitCast(d, LoadEveryFourth(column, r + 2, offset));
    const auto e = hn::BitCast(d, LoadEveryFourth(column, r + 3, offset));
    const auto ab_low = hn::BitCast(du64, hn::InterleaveLower(d, a, b));
    const auto ab_high = hn::BitCast(du64, hn::InterleaveUpper(d, a, b));
    const auto ce_low = hn::BitCast(du64, hn::InterleaveLower(d, c, e));
    const auto ce_high = hn::BitCast(du64, hn::InterleaveUpper(d, c, e));
    lines.line[0][i] = hn::BitCast(du8, hn::InterleaveLower(du64, ab_low, ce_low));
    lines.line[1][i] = hn::BitCast(du8, hn::InterleaveUpper(du64, ab_low, ce_low));
    lines.line[2][i] = hn::BitCast(du8, hn::InterleaveLower(du64, ab_high, ce_high));
    lines.line[3][i] = hn::BitCast(du8, hn::InterleaveUpper(du64, ab_high, ce_high));
  }
  return lines;
}

// The f16 in the low words of 32-bit lanes, as f32.
HWY_INLINE VF32 LowHalves(hn::Vec<DU32> v) {
  const DF32 d;
  const hn::Rebind<uint16_t, DF32> d16;
  const auto low = hn::BitCast(DI32(), hn::And(v, hn::Set(DU32(), 0xffff)));
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, DF32>(), hn::DemoteTo(d16, low)));
}

}  // namespace
}  // namespace quern::simd

// What follows QUERN_TILE(qk_pack_F_panel16), by the PackPanel of the file that says it.
#define QUERN_PANEL(Format)                                                            \
  (void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) { \
    quern::simd::PackPanel<quern::simd::Format>(dst, src, src_stride, rows, k);        \
  }
