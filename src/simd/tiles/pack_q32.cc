// qk_pack_q8_0_panel16, qk_pack_q4_0_panel16: 16 rows of blocks of 32 interleaved for 4-way dot products (kir/layout.h,
// Panel16).
#include "simd/tiles/quant_panel.h"

namespace quern::simd {
namespace {

// d is the first half of a block.
HWY_INLINE void PackScales(const BlockColumn& column, float* scales) {
  const Lines4 header = TransposeRows(column, 0);
  for (int i = 0; i < kLineVectors; ++i) {
    hn::StoreU(LowHalves(hn::BitCast(DU32(), header.line[0][i])), DF32(), scales + i * kLanes);
  }
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_pack_q8_0_panel16)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  using namespace quern::simd;
  const DU8 d;
  auto* panel = static_cast<uint8_t*>(dst);
  auto* scales = reinterpret_cast<float*>(panel + PanelAt<Q8_0>(k).scales);
  for (int64_t b = 0; b < k / 32; ++b, panel += 512, scales += 16) {
    const BlockColumn column = ColumnAt(static_cast<const uint8_t*>(src), src_stride, rows, b * Q8_0::kBytes);
    PackScales(column, scales);
    for (int piece = 0; piece < 2; ++piece) {
      const Lines4 lines = TransposeRows(column, 2 + piece * 16);
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i) {
          const VU8 codes = hn::Xor(lines.line[e][i], hn::Set(d, 0x80));
          hn::StoreU(codes, d, panel + (piece * 4 + e) * 64 + i * kBytes);
        }
      }
    }
  }
}

QUERN_TILE(qk_pack_q4_0_panel16)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  using namespace quern::simd;
  const DU8 d;
  auto* panel = static_cast<uint8_t*>(dst);
  auto* scales = reinterpret_cast<float*>(panel + PanelAt<Q4_0>(k).scales);
  for (int64_t b = 0; b < k / 32; ++b, panel += 512, scales += 16) {
    const BlockColumn column = ColumnAt(static_cast<const uint8_t*>(src), src_stride, rows, b * Q4_0::kBytes);
    PackScales(column, scales);
    const Lines4 lines = TransposeRows(column, 2);
    for (int e = 0; e < 4; ++e) {
      for (int i = 0; i < kLineVectors; ++i) {
        const VU8 packed = lines.line[e][i];
        hn::StoreU(hn::And(packed, hn::Set(d, 15)), d, panel + e * 64 + i * kBytes);
        hn::StoreU(hn::ShiftRight<4>(packed), d, panel + (4 + e) * 64 + i * kBytes);
      }
    }
  }
}
