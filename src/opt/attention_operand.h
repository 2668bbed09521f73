// Where an operand of an attention that is spelled out lies: what it is read through (Transposes, Reshapes, heads that
// are repeated for a group of query heads, factors) taken off, so that Attention reads what is in memory.
#pragma once

#include <vector>

#include "ir/identity.h"
#include "opt/rewriter.h"

namespace quern::opt {

// [B, heads, S, head_dim] as Transpose(Reshape(value, dims), perm).
struct AttentionOperand {
  ir::Value value;
  std::vector<Extent> dims;
  std::vector<int64_t> perm;
  double factor = 1;  // by which the elements are to be multiplied

  const Extent& heads() const { return dims[perm[1]]; }
  // Whether elements would be moved to have [B, heads, S, head_dim] in memory, or [B, S, heads, head_dim].
  bool Moves(bool heads_first) const;
  // The operand so, made of new nodes.
  StatusOr<ir::Value> Make(const Rewriter& rewriter, const ir::MakeNode& make, bool heads_first) const;
};

// Extents of the scores before their last two, in groups: those before `batch_end` are batches; those from there to
// `kv_end` heads of keys and values, of which each serves the query heads along the rest.
struct LeadGroups {
  std::vector<Extent> leads;
  int batch_end = 0, kv_end = 0;

  Extent Batch() const { return Product(0, batch_end); }
  Extent KvHeads() const { return Product(batch_end, kv_end); }
  Extent Heads() const { return Product(batch_end, static_cast<int>(leads.size())); }
  Extent Product(int from, int to) const;
};

// How an operand is read.
struct OperandReading {
  bool turned = false;     // [.., D, S] instead of [.., S, D]
  bool regrouped = false;  // its leading extents are not those of the groups, but as many batches and heads in all
  bool repeats = false;    // heads that are copies of others may be taken off
  bool factors = false;    // and so may factors
  bool stored = false;     // halves are read as they are stored, whatever makes floats of them
};
AttentionOperand OperandBehind(const ir::Graph& graph, ir::Value value, const LeadGroups& groups,
                               const OperandReading& reading);

}  // namespace quern::opt
