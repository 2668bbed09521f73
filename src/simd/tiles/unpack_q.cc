// Of every format F of quant_layout.h, qk_unpack_F: rows of blocks to f32 rows.
// qk_pack_F_kn32: up to 32 rows of blocks to one f32 panel [k][32], missing rows zero.
#include "simd/tiles/pack_float-inl.h"
#include "simd/tiles/quant_decode.h"

namespace quern::simd {
namespace {

template <class Format>
HWY_INLINE void UnpackRow(const uint8_t* block, int64_t k, float* to) {
  for (int64_t b = 0; b < k / Format::kElements; ++b, block += Format::kBytes) {
    const BlockHeader<Format> header(block);
#pragma clang loop unroll(full)
    for (int s = 0; s < Format::kElements / 32; ++s, to += 32) {
      VF32 values[kVectors32];
      Decode32(header, block, s, values);
      for (int v = 0; v < kVectors32; ++v) hn::StoreU(values[v], DF32(), to + v * kLanes);
    }
  }
}

template <class Format>
HWY_INLINE void UnpackRows(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                           int64_t k) {
  for (int64_t r = 0; r < rows; ++r) {
    UnpackRow<Format>(static_cast<const uint8_t*>(src) + r * src_stride, k,
                      reinterpret_cast<float*>(static_cast<uint8_t*>(dst) + r * dst_stride));
  }
}

// 64 columns at a time go through a tile of decoded rows (8 KB, in L1), which is then transposed.
template <class Format>
HWY_INLINE void PackColumns(void* dst, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  constexpr int kStep = Format::kElements < 64 ? 32 : 64;
  constexpr int kTileRow = kStep + 16;  // not a power of two apart, which would crowd a few sets of L1
  HWY_ALIGN float tile[32][kTileRow];
  for (int64_t r = rows; r < 32; ++r) {
    float* row = Opaque(tile[r]);  // or the loop becomes a call of memset
    for (int c = 0; c < kStep; c += kLanes) hn::Store(hn::Zero(DF32()), DF32(), row + c);
  }
  float* to = static_cast<float*>(dst);
  for (int64_t b = 0; b < k / Format::kElements; ++b) {
    for (int part = 0; part < Format::kElements / kStep; ++part, to += kStep * 32) {
      for (int64_t r = 0; r < rows; ++r) {
        const uint8_t* block = static_cast<const uint8_t*>(src) + r * src_stride + b * Format::kBytes;
        const BlockHeader<Format> header(block);
        for (int s = 0; s < kStep / 32; ++s) {
          VF32 values[kVectors32];
          Decode32(header, block, part * (kStep / 32) + s, values);
          for (int v = 0; v < kVectors32; ++v) hn::Store(values[v], DF32(), tile[r] + s * 32 + v * kLanes);
        }
      }
      for (int p = 0; p < kStep; p += 16) Transpose32x16(to + p * 32, 32, tile[0] + p, sizeof(tile[0]));
    }
  }
}

}  // namespace
}  // namespace quern::simd

// A row is a tile of a format.
#define QUERN_UNPACK(Format)                                                                      \
  (void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k) { \
    quern::simd::UnpackRows<quern::simd::Format>(dst, dst_stride, src, src_stride, rows, k);      \
  }
#define QUERN_COLUMNS(Format)                                                          \
  (void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) { \
    quern::simd::PackColumns<quern::simd::Format>(dst, src, src_stride, rows, k);      \
  }

QUERN_TILE(qk_unpack_q8_0) QUERN_UNPACK(Q8_0);
QUERN_TILE(qk_unpack_q4_0) QUERN_UNPACK(Q4_0);
QUERN_TILE(qk_unpack_q5_0) QUERN_UNPACK(Q5_0);
QUERN_TILE(qk_unpack_q4_1) QUERN_UNPACK(Q4_1);
QUERN_TILE(qk_unpack_q5_1) QUERN_UNPACK(Q5_1);
QUERN_TILE(qk_unpack_iq4_nl) QUERN_UNPACK(IQ4_NL);
QUERN_TILE(qk_unpack_mxfp4) QUERN_UNPACK(MXFP4);
QUERN_TILE(qk_unpack_q2_K) QUERN_UNPACK(Q2_K);
QUERN_TILE(qk_unpack_q3_K) QUERN_UNPACK(Q3_K);
QUERN_TILE(qk_unpack_q4_K) QUERN_UNPACK(Q4_K);
QUERN_TILE(qk_unpack_q5_K) QUERN_UNPACK(Q5_K);
QUERN_TILE(qk_unpack_q6_K) QUERN_UNPACK(Q6_K);
QUERN_TILE(qk_unpack_iq4_xs) QUERN_UNPACK(IQ4_XS);
QUERN_TILE(qk_unpack_q8_K) QUERN_UNPACK(Q8_K);
QUERN_TILE(qk_unpack_tq1_0) QUERN_UNPACK(TQ1_0);
QUERN_TILE(qk_unpack_tq2_0) QUERN_UNPACK(TQ2_0);
QUERN_TILE(qk_unpack_iq2_xxs) QUERN_UNPACK(IQ2_XXS);
QUERN_TILE(qk_unpack_iq2_xs) QUERN_UNPACK(IQ2_XS);
QUERN_TILE(qk_unpack_iq2_s) QUERN_UNPACK(IQ2_S);
QUERN_TILE(qk_unpack_iq3_xxs) QUERN_UNPACK(IQ3_XXS);
QUERN_TILE(qk_unpack_iq3_s) QUERN_UNPACK(IQ3_S);
QUERN_TILE(qk_unpack_iq1_s) QUERN_UNPACK(IQ1_S);
QUERN_TILE(qk_unpack_iq1_m) QUERN_UNPACK(IQ1_M);
QUERN_TILE(qk_unpack_n4_0) QUERN_UNPACK(N4_0);
QUERN_TILE(qk_unpack_n4_1) QUERN_UNPACK(N4_1);
QUERN_TILE(qk_unpack_n8_0) QUERN_UNPACK(N8_0);
QUERN_TILE(qk_unpack_n8_1) QUERN_UNPACK(N8_1);

QUERN_TILE(qk_pack_q8_0_kn32) QUERN_COLUMNS(Q8_0);
QUERN_TILE(qk_pack_q4_0_kn32) QUERN_COLUMNS(Q4_0);
QUERN_TILE(qk_pack_q5_0_kn32) QUERN_COLUMNS(Q5_0);
QUERN_TILE(qk_pack_q4_1_kn32) QUERN_COLUMNS(Q4_1);
QUERN_TILE(qk_pack_q5_1_kn32) QUERN_COLUMNS(Q5_1);
QUERN_TILE(qk_pack_iq4_nl_kn32) QUERN_COLUMNS(IQ4_NL);
QUERN_TILE(qk_pack_mxfp4_kn32) QUERN_COLUMNS(MXFP4);
QUERN_TILE(qk_pack_q2_K_kn32) QUERN_COLUMNS(Q2_K);
QUERN_TILE(qk_pack_q3_K_kn32) QUERN_COLUMNS(Q3_K);
QUERN_TILE(qk_pack_q4_K_kn32) QUERN_COLUMNS(Q4_K);
QUERN_TILE(qk_pack_q5_K_kn32) QUERN_COLUMNS(Q5_K);
QUERN_TILE(qk_pack_q6_K_kn32) QUERN_COLUMNS(Q6_K);
QUERN_TILE(qk_pack_iq4_xs_kn32) QUERN_COLUMNS(IQ4_XS);
QUERN_TILE(qk_pack_q8_K_kn32) QUERN_COLUMNS(Q8_K);
QUERN_TILE(qk_pack_tq1_0_kn32) QUERN_COLUMNS(TQ1_0);
QUERN_TILE(qk_pack_tq2_0_kn32) QUERN_COLUMNS(TQ2_0);
QUERN_TILE(qk_pack_iq2_xxs_kn32) QUERN_COLUMNS(IQ2_XXS);
QUERN_TILE(qk_pack_iq2_xs_kn32) QUERN_COLUMNS(IQ2_XS);
QUERN_TILE(qk_pack_iq2_s_kn32) QUERN_COLUMNS(IQ2_S);
QUERN_TILE(qk_pack_iq3_xxs_kn32) QUERN_COLUMNS(IQ3_XXS);
QUERN_TILE(qk_pack_iq3_s_kn32) QUERN_COLUMNS(IQ3_S);
QUERN_TILE(qk_pack_iq1_s_kn32) QUERN_COLUMNS(IQ1_S);
QUERN_TILE(qk_pack_iq1_m_kn32) QUERN_COLUMNS(IQ1_M);
QUERN_TILE(qk_pack_n4_0_kn32) QUERN_COLUMNS(N4_0);
QUERN_TILE(qk_pack_n4_1_kn32) QUERN_COLUMNS(N4_1);
QUERN_TILE(qk_pack_n8_0_kn32) QUERN_COLUMNS(N8_0);
QUERN_TILE(qk_pack_n8_1_kn32) QUERN_COLUMNS(N8_1);
