// qk_pack_f32_kn32, qk_pack_f16_kn32: up to 32 rows of a weight to a panel for qk_mma_f32.
//
//   src: `rows` <= 32 rows of k f32 or f16, src_stride bytes apart.  dst: f32 [k][32], dst[p][j] = src[j][p], zero
//   for the missing rows. src is not read past its last element.
#include "simd/tiles/pack_float-inl.h"

QUERN_TILE(qk_pack_f32_kn32)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  PackRows(static_cast<float*>(dst), kPackRows, static_cast<const float*>(src), src_stride, rows, k);
}

QUERN_TILE(qk_pack_f16_kn32)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  PackRows(static_cast<float*>(dst), kPackRows, static_cast<const F16*>(src), src_stride, rows, k);
}
