// Attention in other ops: its weights as a tensor in memory, [B, kv_heads, group, Sq, Sk]. What its gradient
// recomputes, and what stands in the place of its kernel where a policy asks for that.
#pragma once

#include <span>
#include <vector>

#include "ir/attention.h"
#include "ir/backward.h"

namespace quern::ir {

struct SpelledAttention {
  AttentionShape shape;
  Extent batch, sq, sk;
  double scale;
  Term q;                              // [B, kv_heads, group, Sq, head_dim]
  Term k, v;                           // [B, kv_heads, 1, Sk, head_dim]
  Term bent, weights;                  // tanh of the scores, where they are capped; softmax, 0 in rows that see no key
  std::vector<Extent> bias_dims = {};  // of a bias, with the heads apart
};

// Of a node with the operands and attributes of an Attention without lengths of sequences.
SpelledAttention SpellWeights(Expansion& e, const Node& node, std::span<const Value> inputs);
// A tensor of the form of q, by head as q is there.
Term QueryHeads(Expansion& e, const SpelledAttention& attention, Value x);
// From [B, heads, S, head_dim] to the layout, which has these extents.
Term FromHeads(const Term& x, const AttentionShape& shape, const std::vector<Extent>& dims);

// What is wanted of k or v beside a q of that dtype, or of q itself: null where it has that. All may be f64, which is
// computed in this form.
const char* WantedBeside(DType q, DType operand);
// Whether an Attention has such a form, and that form.
bool IsSpellable(const Attributes& attention);
StatusOr<std::vector<Value>> SpellAttention(Graph& graph, const Node& node, std::span<const Value> inputs, int origin);

}  // namespace quern::ir
