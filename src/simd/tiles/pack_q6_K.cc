// qk_pack_q6_K_panel16: 16 rows of q6_K blocks interleaved for 4-way dot products (kir/layout.h, Panel16).
//
// The low nibbles and the pairs of high bits are transposed as they are packed and put together afterwards.
#include "simd/tiles/quant_amx.h"
#include "simd/tiles/quant_panel.h"

namespace quern::simd {
namespace {

// d * scale of the 16 groups; on AMX the scale twice, in both words of a lane, and d. The last 16 bytes of a block end with
// two scales and d.
HWY_INLINE void PackScales(const BlockColumn& column, void* scales, [[maybe_unused]] float* supers) {
  const DF32 df;
  const Lines4 bytes = TransposeRows(column, 192), tail = TransposeRows(column, Q6_K::kBytes - 16);
  for (int i = 0; i < kLineVectors; ++i) {
    const VF32 d = LowHalves(hn::ShiftRight<16>(hn::BitCast(DU32(), tail.line[3][i])));
#if defined(__AMX_INT8__)
    hn::StoreU(d, df, supers);
#endif
    for (int g = 0; g < 16; ++g) {
      const VI32 four = hn::BitCast(DI32(), bytes.line[g / 4][i]);
      const VI32 scale = hn::ShiftRight<24>(hn::ShiftLeftSame(four, 24 - g % 4 * 8));
#if defined(__AMX_INT8__)
      const VI32 words = hn::Or(hn::And(scale, hn::Set(DI32(), 0xffff)), hn::ShiftLeft<16>(scale));
      hn::StoreU(words, DI32(), static_cast<int32_t*>(scales) + g * 16);
#else
      hn::StoreU(hn::Mul(d, hn::ConvertTo(df, scale)), df, static_cast<float*>(scales) + g * 16 + i * kLanes);
#endif
    }
  }
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_pack_q6_K_panel16)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  using namespace quern::simd;
  const DU8 d;
  const hn::ScalableTag<uint16_t> d16;
#if defined(__AMX_INT8__)
  const AmxPanelAt<Q6_K> at(k);
#else
  const PanelAt<Q6_K> at(k);
#endif
  auto* panel = static_cast<uint8_t*>(dst);
  for (int64_t b = 0; b < k / 256; ++b) {
    const BlockColumn column = ColumnAt(static_cast<const uint8_t*>(src), src_stride, rows, b * Q6_K::kBytes);
#if defined(__AMX_INT8__)
    alignas(64) int32_t scales[16][16];
    PackScales(column, scales, reinterpret_cast<float*>(panel + at.supers) + b * 16);
#else
    PackScales(column, reinterpret_cast<float*>(panel + at.scales) + b * 256, nullptr);
#endif
    // Codes of four elements of the 16 rows: element j of the block and the three after it.
    const auto store = [&](VU8 codes, int j, int i) {
#if defined(__AMX_INT8__)
      (void)i;
      const VI16 words = hn::BitCast(DI16(), codes), offset = hn::Set(DI16(), 32);
      const VI16 even = hn::Sub(hn::And(words, hn::Set(DI16(), 255)), offset);
      const VI16 odd = hn::Sub(hn::ShiftRight<8>(words), offset);  // a code is below 64, so the sign bit is clear
      const VI16 scale = hn::BitCast(DI16(), hn::Load(DI32(), scales[j / 16]));
      StorePlanes(hn::Mul(even, scale), hn::Mul(odd, scale), panel + AmxPanelAt<Q6_K>::Line(b * 256 + j));
#else
      hn::StoreU(codes, d, panel + (b * 64 + j / 4) * 64 + i * kBytes);
#endif
    };
    for (int piece = 0; piece < 4; ++piece) {  // 16 elements of each of the four streams of one half
      const int half = piece / 2, from = piece % 2 * 16;
      const Lines4 first = TransposeRows(column, half * 64 + from);
      const Lines4 second = TransposeRows(column, half * 64 + 32 + from);
      const Lines4 top = TransposeRows(column, 128 + half * 32 + from);
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i) {
          const VU8 two_bits = hn::Set(d, 0x30), four_bits = hn::Set(d, 15);
          const auto high = hn::BitCast(d16, top.line[e][i]);
          const VU8 a = first.line[e][i], c = second.line[e][i];
          const auto bits = [&](auto moved) { return hn::And(hn::BitCast(d, moved), two_bits); };
          const int j = half * 128 + from + e * 4;
          store(hn::Or(hn::And(a, four_bits), bits(hn::ShiftLeft<4>(high))), j, i);
          store(hn::Or(hn::And(c, four_bits), bits(hn::ShiftLeft<2>(high))), j + 32, i);
          store(hn::Or(hn::ShiftRight<4>(a), bits(high)), j + 64, i);
          store(hn::Or(hn::ShiftRight<4>(c), bits(hn::ShiftRight<2>(high))), j + 96, i);
        }
      }
    }
  }
}
