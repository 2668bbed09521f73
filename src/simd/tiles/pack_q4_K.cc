// qk_pack_q4_K_panel16: 16 rows of q4_K blocks interleaved for 4-way dot products (kir/layout.h, Panel16).
//
// The rows are transposed while still packed, two codes a byte, and split into codes afterwards: half the shuffles.
#include "simd/tiles/quant_amx.h"
#include "simd/tiles/quant_panel.h"

namespace quern::simd {
namespace {

// Scales, minimums and d of one block column: the 16 header bytes of a block are the dwords (d, dmin), a, b, c, so the
// six-bit fields of all rows unpack at once, four fields in the bytes of a lane.
//   scales: of the 16 rows for each sub-block, f32 d * scale;  on AMX the six bits twice, in both words of a lane
//   supers: dmin of the 16 rows;  on AMX d, then dmin
HWY_INLINE void PackHeader(const BlockColumn& column, void* scales, uint32_t* mins, float* supers) {
  const DU32 d;
  const DF32 df;
  const Lines4 header = TransposeRows(column, 0);
  for (int i = 0; i < kLineVectors; ++i) {
    const auto halves = hn::BitCast(d, header.line[0][i]);
    const auto a = hn::BitCast(d, header.line[1][i]), b = hn::BitCast(d, header.line[2][i]);
    const auto c = hn::BitCast(d, header.line[3][i]);
    const auto six = hn::Set(d, 0x3f3f3f3f), four = hn::Set(d, 0x0f0f0f0f), top = hn::Set(d, 0x30303030);
    const auto high_scales = hn::Or(hn::And(c, four), hn::And(hn::ShiftRight<2>(a), top));
    const auto high_mins = hn::Or(hn::And(hn::ShiftRight<4>(c), four), hn::And(hn::ShiftRight<2>(b), top));
    const hn::Vec<DU32> scale_bytes[2] = {hn::And(a, six), high_scales};
    const hn::Vec<DU32> min_bytes[2] = {hn::And(b, six), high_mins};
    const VF32 block_d = LowHalves(halves);
#if defined(__AMX_INT8__)
    hn::StoreU(block_d, df, supers);
    supers += 16;
#endif
    hn::StoreU(LowHalves(hn::ShiftRight<16>(halves)), df, supers + i * kLanes);
    const auto byte = hn::Set(d, 255);
    for (int s = 0; s < 8; ++s) {
      const auto scale = hn::And(hn::ShiftRightSame(scale_bytes[s / 4], s % 4 * 8), byte);
#if defined(__AMX_INT8__)
      hn::StoreU(hn::Or(scale, hn::ShiftLeft<16>(scale)), d, static_cast<uint32_t*>(scales) + s * 16);
#else
      hn::StoreU(hn::Mul(block_d, hn::ConvertTo(df, hn::BitCast(DI32(), scale))), df,
                 static_cast<float*>(scales) + s * 16 + i * kLanes);
#endif
    }
    for (int pair = 0; pair < 4; ++pair) {
      const auto two = hn::ShiftRightSame(min_bytes[pair / 2], pair % 2 * 16);
      const auto words = hn::Or(hn::And(two, byte), hn::ShiftLeft<8>(hn::And(two, hn::Set(d, 0xff00))));
      hn::StoreU(words, d, mins + pair * 16 + i * kLanes);
    }
  }
}

#if defined(__AMX_INT8__)
// Codes times scales, in two planes (quant_amx.h).
HWY_INLINE void PackAmxPanel(uint8_t* panel, const uint8_t* src, int64_t src_stride, int64_t rows, int64_t k) {
  const DI16 d;
  const AmxPanelAt<Q4_K> at(k);
  for (int64_t b = 0; b < k / 256; ++b) {
    const BlockColumn column = ColumnAt(src, src_stride, rows, b * Q4_K::kBytes);
    alignas(64) uint32_t scales[8][16];
    PackHeader(column, scales, reinterpret_cast<uint32_t*>(panel + at.mins) + b * 64,
               reinterpret_cast<float*>(panel + at.supers) + b * 32);
    const auto store = [&](VI16 packed, int shift, VI16 scale, uint8_t* line) {
      // Bits 0..3 and 8..11 of a word are two neighbouring codes.
      const auto codes = hn::ShiftRightSame(hn::BitCast(hn::ScalableTag<uint16_t>(), packed), shift);
      const VI16 even = hn::And(hn::BitCast(d, codes), hn::Set(d, 15));
      const VI16 odd = hn::And(hn::BitCast(d, hn::ShiftRight<8>(codes)), hn::Set(d, 15));
      StorePlanes(hn::Mul(even, scale), hn::Mul(odd, scale), line);
    };
    for (int chunk = 0; chunk < 4; ++chunk) {
      const VI16 low_scale = hn::BitCast(d, hn::Load(DU32(), scales[2 * chunk]));
      const VI16 high_scale = hn::BitCast(d, hn::Load(DU32(), scales[2 * chunk + 1]));
      for (int piece = 0; piece < 2; ++piece) {
        const Lines4 lines = TransposeRows(column, 16 + chunk * 32 + piece * 16);
        uint8_t* to = panel + AmxPanelAt<Q4_K>::Line(b * 256 + chunk * 64 + piece * 16);
        QUERN_UNROLL
        for (int e = 0; e < 4; ++e) {
          const VI16 packed = hn::BitCast(d, lines.line[e][0]);
          store(packed, 0, low_scale, to + e * 64);
          store(packed, 4, high_scale, to + (8 + e) * 64);
        }
      }
    }
  }
}
#endif

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_pack_q4_K_panel16)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  using namespace quern::simd;
#if defined(__AMX_INT8__)
  PackAmxPanel(static_cast<uint8_t*>(dst), static_cast<const uint8_t*>(src), src_stride, rows, k);
#else
  const DU8 d;
  const PanelAt<Q4_K> at(k);
  auto* panel = static_cast<uint8_t*>(dst);
  for (int64_t b = 0; b < k / 256; ++b) {
    const BlockColumn column = ColumnAt(static_cast<const uint8_t*>(src), src_stride, rows, b * Q4_K::kBytes);
    PackHeader(column, reinterpret_cast<float*>(panel + at.scales) + b * 128,
               reinterpret_cast<uint32_t*>(panel + at.mins) + b * 64,
               reinterpret_cast<float*>(panel + at.supers) + b * 16);
    uint8_t* codes = panel + b * 256 * 16;
    for (int piece = 0; piece < 8; ++piece) {  // 16 bytes: 16 codes of an even sub-block and 16 of the odd one after it
      const Lines4 lines = TransposeRows(column, 16 + piece * 16);
      uint8_t* low = codes + (piece / 2 * 16 + piece % 2 * 4) * 64;
      for (int e = 0; e < 4; ++e) {
        for (int i = 0; i < kLineVectors; ++i) {
          const VU8 packed = lines.line[e][i];
          hn::StoreU(hn::And(packed, hn::Set(d, 15)), d, low + e * 64 + i * kBytes);
          hn::StoreU(hn::ShiftRight<4>(packed), d, low + (8 + e) * 64 + i * kBytes);
        }
      }
    }
  }
#endif
}
