// References of names for chains of ops: the references of the parts, one after the other. Halves
// count as f32, which stays exact until the end.
#pragma once

#include <deque>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace quern::ir {

class ReferenceChain {
 public:
  // `magnitude`: results are the magnitudes of the ops that have one, of operands that are magnitudes themselves.
  ReferenceChain(const RefContext& context, bool magnitude) : context_(context), magnitude_(magnitude) {}

  // The first result of the op over operands that outlive the chain, or of a step before; null after an error.
  const RefTensor* Run(std::string_view op, std::vector<const RefTensor*> operands, Attributes attributes = {});
  const Status& status() const { return status_; }
  // The last step: result `r` of the node is `value`, rounded to its dtype.
  Status Give(int r, const RefTensor* value);

 private:
  const RefContext& context_;
  const bool magnitude_;
  std::deque<RefTensor> made_;
  Status status_;
};

}  // namespace quern::ir
