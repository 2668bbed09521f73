// qk_pack_F_panel16 of the formats of blocks of 256 (quant_pack256.h; at the level `amx` amx_q256.h).
#include "simd/tiles/amx_q256.h"
#include "simd/tiles/quant_pack256.h"

#if defined(__AMX_INT8__)
#define QUERN_PANEL_256 QUERN_TILE_PANEL
#else
#define QUERN_PANEL_256 QUERN_PANEL
#endif

QUERN_TILE(qk_pack_q2_K_panel16) QUERN_PANEL_256(Q2_K);
QUERN_TILE(qk_pack_q3_K_panel16) QUERN_PANEL_256(Q3_K);
QUERN_TILE(qk_pack_q4_K_panel16) QUERN_PANEL_256(Q4_K);
QUERN_TILE(qk_pack_q5_K_panel16) QUERN_PANEL_256(Q5_K);
QUERN_TILE(qk_pack_q6_K_panel16) QUERN_PANEL_256(Q6_K);
QUERN_TILE(qk_pack_iq4_xs_panel16) QUERN_PANEL_256(IQ4_XS);
QUERN_TILE(qk_pack_q8_K_panel16) QUERN_PANEL_256(Q8_K);
QUERN_TILE(qk_pack_tq1_0_panel16) QUERN_PANEL_256(TQ1_0);
QUERN_TILE(qk_pack_tq2_0_panel16) QUERN_PANEL_256(TQ2_0);
QUERN_TILE(qk_pack_iq2_xxs_panel16) QUERN_PANEL_256(IQ2_XXS);
QUERN_TILE(qk_pack_iq2_xs_panel16) QUERN_PANEL_256(IQ2_XS);
QUERN_TILE(qk_pack_iq2_s_panel16) QUERN_PANEL_256(IQ2_S);
QUERN_TILE(qk_pack_iq3_xxs_panel16) QUERN_PANEL_256(IQ3_XXS);
QUERN_TILE(qk_pack_iq3_s_panel16) QUERN_PANEL_256(IQ3_S);
QUERN_TILE(qk_pack_iq1_s_panel16) QUERN_PANEL_256(IQ1_S);
QUERN_TILE(qk_pack_iq1_m_panel16) QUERN_PANEL_256(IQ1_M);
