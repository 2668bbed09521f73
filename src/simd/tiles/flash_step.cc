// qk_flash_step_K, qk_flash_step_K_V: one step of online softmax attention, r query rows over t keys of one kv head,
// keys of K, values of V or as the keys. qk_flash_step_bf16_pairs, _bf16_pairs_V: queries of bf16 too, multiplied by
// keys in pairs.
//
//   s = (q . k) * scale; with softcap c > 0: s = c * tanh(s / c); then + bias[i, j] unless bias is null.
//   Row i may see key j iff lo[i] <= j < hi[i] (i32, any values). With m' = max(m, max s),
//   a = exp(m - m') and p = exp(s - m'): o = o a + p v, l = l a + sum p, m = m'. Start from o = 0, m = -inf, l = 0;
//   the result is o / l.
//
//   Of a step with `many` (not 0) the rows are some of many: each has the bits that it has beside any others.
//
//   o: f32 [r, d], o_ld elements between rows; m, l: f32 [r]. q: f32 rows; k, v: f32, f16 or bf16 rows; bias: f32 rows;
//   strides in bytes. r <= 64, t <= 64, any d. Nothing is read past the t keys. A key that a row may not see, or whose
//   bias is -inf, takes no part in it, whatever it holds; a row without any other keeps o, m and l. NaN in a key that
//   takes part stays NaN.
//
//   workspace: 512 * d + 32768 bytes, aligned to 64.
#include "simd/tiles/flash_few-inl.h"
#include "simd/tiles/flash_many-inl.h"

namespace {

template <typename Q, typename K, typename V>
HWY_INLINE void FlashStep(float* o, int64_t o_ld, float* m, float* l, const void* q, int64_t q_stride, const void* k,
                          int64_t k_stride, const void* v, int64_t v_stride, const void* lo, const void* hi,
                          const void* bias, int64_t bias_stride, int64_t r, int64_t d, int64_t t, float scale,
                          float softcap, int64_t many, void* workspace) {
  Step s;
  s.o = o, s.o_ld = o_ld, s.m = m, s.l = l;
  s.q = static_cast<const char*>(q), s.q_stride = q_stride;
  s.k = static_cast<const char*>(k), s.k_stride = k_stride;
  s.v = static_cast<const char*>(v), s.v_stride = v_stride;
  s.lo = static_cast<const int32_t*>(lo), s.hi = static_cast<const int32_t*>(hi);
  s.bias = static_cast<const char*>(bias), s.bias_stride = bias_stride;
  s.d = d, s.t = t, s.v_bytes = d * static_cast<int64_t>(sizeof(V)), s.scale = scale, s.softcap = softcap;
  s.scores = static_cast<float*>(workspace);
  s.wide = s.scores + kMostRows * kMostKeys;
  // Causal masks and windows leave out rows at the ends.
  int64_t first = 0;
  while (first < r && s.RowKeys(first).empty()) ++first;
  while (r > first && s.RowKeys(r - 1).empty()) --r;
  // Up to 8 rows, transposing the keys costs more than the wider tiles save. But how many see keys says nothing to the
  // row that is one of many.
  if (many == 0 && r - first <= 8) {
    FewRowsAny<Q, K, V>(s, first, r - first);
  } else {
    ManyRows<Q, K, V>(s, first, r - first);
  }
}

}  // namespace

#define FLASH_PARAMETERS                                                                                        \
  float *o, int64_t o_ld, float *m, int64_t, float *l, int64_t, const void *q, int64_t q_stride, const void *k, \
      int64_t k_stride, const void *v, int64_t v_stride, const void *lo, int64_t, const void *hi, int64_t,      \
      const void *bias, int64_t bias_stride, int64_t r, int64_t d, int64_t t, float scale, float softcap,       \
      int64_t many, void *workspace
#define FLASH_ARGUMENTS                                                                                           \
  o, o_ld, m, l, q, q_stride, k, k_stride, v, v_stride, lo, hi, bias, bias_stride, r, d, t, scale, softcap, many, \
      workspace

QUERN_TILE(qk_flash_step_f32)(FLASH_PARAMETERS) { FlashStep<float, float, float>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_f32_f16)(FLASH_PARAMETERS) { FlashStep<float, float, F16>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_f32_bf16)(FLASH_PARAMETERS) { FlashStep<float, float, BF16>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_f16_f32)(FLASH_PARAMETERS) { FlashStep<float, F16, float>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_f16)(FLASH_PARAMETERS) { FlashStep<float, F16, F16>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_f16_bf16)(FLASH_PARAMETERS) { FlashStep<float, F16, BF16>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_bf16_f32)(FLASH_PARAMETERS) { FlashStep<float, BF16, float>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_bf16_f16)(FLASH_PARAMETERS) { FlashStep<float, BF16, F16>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_bf16)(FLASH_PARAMETERS) { FlashStep<float, BF16, BF16>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_bf16_pairs)(FLASH_PARAMETERS) { FlashStep<BF16, BF16, BF16>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_bf16_pairs_f32)(FLASH_PARAMETERS) { FlashStep<BF16, BF16, float>(FLASH_ARGUMENTS); }
QUERN_TILE(qk_flash_step_bf16_pairs_f16)(FLASH_PARAMETERS) { FlashStep<BF16, BF16, F16>(FLASH_ARGUMENTS); }
