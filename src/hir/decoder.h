// The pre-norm decoder layer of Llama models, which LlamaDecoderBlock and its alias TransformerBlock are.
//
//   n1 = RMS(x; ln1);  q, k, v = n1 Wq, n1 Wk, n1 Wv;  q, k = RoPE(q), RoPE(k);  a = Attention(q, k, v)
//   h = x + a Wo;  n2 = RMS(h; ln2);  out = h + (silu(n2 Wgate) * (n2 Wup)) Wdown
//
// x is [S, E] (one sequence) or [B, S, E]; cos and sin are as RoPE takes them, already at this step's positions.
// Weights are [K, N], or with weight_layout "nk" rows [N, K] of any float or block dtype. Gate comes before up here.
//
// With k_cache and v_cache [rows, kv_heads, head_dim] (f32, f16 or bf16 each) the step's keys and values are written at
// row PAST_SEQ, attention reads the first PAST_SEQ + S rows, and the caches are further results: donate the inputs to
// them.
//
// Labels below the block's own: attention_norm, attention/{q,k,v,q_rope,k_rope,k_cache,v_cache,o}, attention, ffn_norm,
// ffn/{gate,up,down}, ffn.
#pragma once

#include "hir/block.h"

namespace quern::hir {

// The symbol of the rows that a cache holds before this step.
inline constexpr const char* kPastSymbol = "PAST_SEQ";

BlockDef DecoderBlock(const char* name, const char* label);

}  // namespace quern::hir
