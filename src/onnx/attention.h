// Attention and rotary embeddings, for the contributed ops that have them.
#pragma once

#include "onnx/importer.h"

namespace quern::onnx {

// [B, S, N d] as [B, N, S, d], and back.
Value Heads(Call& c, Value packed, int64_t heads);
Value Packed(Call& c, Value heads);

struct Attending {
  double scale = 0, softcap = 0;    // 0: 1 / sqrt(d), none
  std::vector<Value> biases = {};   // floats that broadcast to [B, N, S, T], added to scores
  std::vector<Value> allowed = {};  // bools that do: false hides
};
// Of q [B, N, S, d], k [B, M, T, d] and v [B, M, T, e]: [B, N, S, e].
Value Attend(Call& c, Value q, Value k, Value v, const Attending& how);
// bool [S, T] (or [B, 1, S, T]): key j of query i, which is at place i + `past` ([] or [B]), is not behind it, nor
// before its window where that is above 0.
Value Causal(Call& c, const Extent& queries, const Extent& keys, Value past, int64_t window);
// Keys or values [B, N, T, d] behind those of the past.
Value Joined(Call& c, Value past, Value now);
// Both behind the operands `past` and `past` + 1, if these are there: how many they are.
Extent JoinPast(Call& c, int past, Value& k, Value& v);
// Rows of tables of cosines or sines, [B or 1, S, half], as [B or 1, 1, S, half]; those of a table at positions [B or
// 1, S].
Value BesideHeads(Call& c, Value rows);
Value TableAt(Call& c, Value table, Value positions);
// x [B, N, S, d], of which the first dimensions are turned: cos and sin are [B or 1, 1, S, half of them].
Value Rotated(Call& c, Value x, Value cos, Value sin, bool interleaved);
// The same of x that may be [B, S, N d], of so many heads.
Value RotatedHeads(Call& c, Value x, int64_t heads, Value cos, Value sin);

// Attention of q, k and v that lie one behind the other in `packed` [B, S, widths], as the attributes of the call say,
// and its result. `mask`, `past` and `bias`: operands, of which each may be absent; -1: there is none.
void AttendPacked(Call& c, Value packed, int mask, int past, int bias);

void ContribAttention(Call& c);
void MultiHeadAttention(Call& c);
void GroupQueryAttention(Call& c);
void ContribRotary(Call& c);

}  // namespace quern::onnx
