// qk_pack_q6_K_panel16: 16 rows of q6_K blocks interleaved for 4-way dot products (kir/layout.h, Panel16).
//
// The low nibbles and the pairs of high bits are transposed as they are packed and put together afterwards.
#include "simd/tiles/quant_panel.h"

namespace quern::simd {
namespace {

// d * scale of the 16 groups. The last 16 bytes of a block end with two scales and d.
HWY_INLINE void PackScales(const BlockColumn& column, float* scales) {
  const DF32 df;
  const Lines4 bytes = TransposeRows(column, 192), tail = TransposeRows(column, Q6_K::kBytes - 16);
  for (int i = 0; i < kLineVectors; ++i) {
    const VF32 d = LowHalves(hn::ShiftRight<16>(hn::BitCast(DU32(), tail.line[3][i])));
    for (int g = 0; g < 16; ++g) {
      const VI32 four = hn::BitCast(DI32(), bytes.line[g / 4][i]);
      const VI32 scale = hn::ShiftRight<24>(hn::ShiftLeftSame(four, 24 - g % 4 * 8));
      hn::StoreU(hn::Mul(d, hn::ConvertTo(df, scale)), df, scales + g * 16 + i * kLanes);
    }
  }
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_pack_q6_K_panel16)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  using namespace quern::simd;
  const DU8 d;
  const hn::ScalableTag<uint16_t> d16;
  const PanelAt<Q6_K> at(k);
  auto* panel = static_cast<uint8_t*>(dst);
  for (int64_t b = 0; b < k / 256; ++b) {
    const BlockColumn column = ColumnAt(static_cast<const uint8_t*>(src), src_stride, rows, b * Q6_K::kBytes);
    PackScales(column, reinterpret_cast<float*>(panel + at.scales) + b * 256);
    uint8_t* codes = panel + b * 256 * 16;
    for (int piece = 0; piece < 4; ++piece) {  // 16 elements of each of the four streams of one half
      const int half = piece / 2, from = piece % 2 * 16;
      const Lines4 first = TransposeRows(column, half * 64 + from);
      const Lines4 second = TransposeRows(column, half * 64 + 32 + from);
      const Lines4 top = TransposeRows(column, 128 + half * 32 + from);
      uint8_t* to = codes + (half * 32 + from / 4) * 64;
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i) {
          const VU8 two_bits = hn::Set(d, 0x30), four_bits = hn::Set(d, 15);
          const auto high = hn::BitCast(d16, top.line[e][i]);
          const VU8 a = first.line[e][i], c = second.line[e][i];
          const auto bits = [&](auto moved) { return hn::And(hn::BitCast(d, moved), two_bits); };
          uint8_t* line = to + e * 64 + i * kBytes;
          hn::StoreU(hn::Or(hn::And(a, four_bits), bits(hn::ShiftLeft<4>(high))), d, line);
          hn::StoreU(hn::Or(hn::And(c, four_bits), bits(hn::ShiftLeft<2>(high))), d, line + 8 * 64);
          hn::StoreU(hn::Or(hn::ShiftRight<4>(a), bits(high)), d, line + 16 * 64);
          hn::StoreU(hn::Or(hn::ShiftRight<4>(c), bits(hn::ShiftRight<2>(high))), d, line + 24 * 64);
        }
      }
    }
  }
}
