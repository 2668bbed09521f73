// qk_pack_f32_kn32, qk_pack_f16_kn32, qk_pack_bf16_kn32: up to 32 rows of a weight to a panel for qk_mma_f32.
//
//   src: `rows` <= 32 rows of k f32, f16 or bf16, src_stride bytes apart.  dst: f32 [k][32], dst[p][j] = src[j][p],
//   zero for the missing rows. src is not read past its last element.
//
// qk_pack_pairs: rows of bf16, or of f16 alike, to a panel for qk_mma_bf16_pairs: words [ceil(k / 2)][32] of two
// neighbours.
//
// qk_pack_quads: rows of bytes to a panel for qk_mma_i8_quads and qk_mma_u8_quads, words [ceil(k / 4)][32] of four.
#include "simd/tiles/pack_float-inl.h"

QUERN_TILE(qk_pack_f32_kn32)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  PackRows(static_cast<float*>(dst), kPackRows, static_cast<const float*>(src), src_stride, rows, k);
}

QUERN_TILE(qk_pack_f16_kn32)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  PackRows(static_cast<float*>(dst), kPackRows, static_cast<const F16*>(src), src_stride, rows, k);
}

QUERN_TILE(qk_pack_bf16_kn32)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  PackRows(static_cast<float*>(dst), kPackRows, static_cast<const BF16*>(src), src_stride, rows, k);
}

QUERN_TILE(qk_pack_pairs)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  PackPairs(static_cast<uint32_t*>(dst), kPackRows, static_cast<const BF16*>(src), src_stride, rows, k);
}

QUERN_TILE(qk_pack_quads)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  // Words are moved as if they were floats, as pairs are.
  PackRows(static_cast<float*>(dst), kPackRows, static_cast<const float*>(src), src_stride, rows, k / 4);
  if (k % 4 == 0) return;
  uint32_t* last = static_cast<uint32_t*>(dst) + k / 4 * kPackRows;
  for (int64_t j = 0; j < kPackRows; ++j) {
    const uint8_t* row = static_cast<const uint8_t*>(src) + j * src_stride;
    uint32_t word = 0;
    for (int64_t p = k / 4 * 4; p < k && j < rows; ++p) word |= uint32_t{row[p]} << 8 * (p % 4);
    last[j] = word;
  }
}
