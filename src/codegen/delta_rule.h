// The delta rule's kernel while it is written: what its two schedules, token by token (delta_rule.cc) and in chunks of
// tokens (delta_chunks.cc), read and write.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_writer.h"
#include "ir/delta_rule.h"

namespace quern::codegen {

class DeltaRule {
 public:
  explicit DeltaRule(const RegionView& view);

  // An element of an operand (ir::kDeltaQ and the others).
  kir::ExprRef Read(int operand, kir::Index at) { return expr_.Element(inputs_[operand], at); }
  // Of the state before the first token.
  kir::ExprRef Before(const kir::Index& at) {
    return in_place_ ? kir::build::At(after_, DType::kF32, at) : Read(ir::kDeltaState, at);
  }
  // The key head that head `h` reads.
  kir::ExprRef KeyOf(const kir::ExprRef& h) const;
  // `store`, which is of the op.
  kir::StmtRef Of(const kir::StmtRef& store) { return kir::build::WithOrigin(store, writer.Origin(root_)); }

  const std::string& o() const { return o_; }          // "" where nothing needs it
  const std::string& after() const { return after_; }  // the state after the last token, "" where nothing needs it
  const Extent& batch() const { return batch_; }
  const Extent& length() const { return length_; }
  int64_t n() const { return n_; }
  int64_t m() const { return m_; }
  int64_t heads() const { return heads_; }
  bool by_channel() const { return by_channel_; }
  double scale() const { return scale_; }

  KernelWriter writer;

 private:
  void Names();

  const RegionView& view_;
  FusedExpr expr_;
  int root_ = -1;
  std::vector<ir::Value> inputs_;
  Extent batch_, length_;
  int64_t n_ = 0, m_ = 0, heads_ = 0, group_ = 1;
  bool by_channel_ = false, in_place_ = false;
  double scale_ = 1;
  std::string o_, after_;
};

// Whether a sequence of `length` tokens, at most, goes in chunks.
bool TakesDeltaChunks(const DeltaRule& rule, int64_t length);
// The kernel's grid and body.
void WriteDeltaChunks(DeltaRule& rule);

}  // namespace quern::codegen
