// What GatedDeltaNet and DeltaRule, the form that kernels are made of, have in common: one rule of extents, and the
// recurrence in double.
//
//   q, k [B, S, G, n]   v [B, S, H, m]   g [B, S, H], or by channel [B, S, H, n]   beta [B, S, H]   state [B, H, n, m]
//
// Head h reads key head h / (H / G). For each b, h and t in order, with S the state, row i by key and column j by
// value:
//   S_ij *= e^g    d_j = beta (v_j - sum_i S_ij k_i)    S_ij += k_i d_j    o_j = scale sum_i S_ij q_i
#pragma once

#include "ir/op.h"

namespace quern::ir {

// Positions of the operands.
enum : int { kDeltaQ, kDeltaK, kDeltaV, kDeltaDecay, kDeltaBeta, kDeltaState };

// The types of o, [B, S, H, m], and of the state, f32 [B, H, n, m]; `per_channel`: g has n of each head.
StatusOr<std::vector<TensorType>> InferDeltaRule(const InferContext& context, bool per_channel);
// The recurrence, token by token.
Status ReferenceDeltaRule(RefContext& context, double scale);
// The same with every term positive: what roundings of the recurrence are relative to.
Status MagnitudeOfDeltaRule(RefContext& context, double scale);

}  // namespace quern::ir
