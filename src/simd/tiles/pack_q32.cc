// qk_pack_{q8_0,q4_0,q5_0,q4_1,q5_1,iq4_nl,mxfp4}_panel16: of formats of blocks of 32 (quant_pack32.h); at the level
// `amx` with signed codes (amx_q32.h).
#include "simd/tiles/quant_pack32.h"

#if defined(__AMX_INT8__)
#define QUERN_PANEL_32(Format)                                                         \
  (void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) { \
    quern::simd::PackPanel<quern::simd::Format, true>(dst, src, src_stride, rows, k);  \
  }
#else
#define QUERN_PANEL_32 QUERN_PANEL
#endif

QUERN_TILE(qk_pack_q8_0_panel16) QUERN_PANEL_32(Q8_0);
QUERN_TILE(qk_pack_q4_0_panel16) QUERN_PANEL_32(Q4_0);
QUERN_TILE(qk_pack_q5_0_panel16) QUERN_PANEL_32(Q5_0);
QUERN_TILE(qk_pack_q4_1_panel16) QUERN_PANEL_32(Q4_1);
QUERN_TILE(qk_pack_q5_1_panel16) QUERN_PANEL_32(Q5_1);
QUERN_TILE(qk_pack_iq4_nl_panel16) QUERN_PANEL_32(IQ4_NL);
QUERN_TILE(qk_pack_mxfp4_panel16) QUERN_PANEL_32(MXFP4);
