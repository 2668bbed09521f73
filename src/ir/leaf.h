// The ops that the builder makes by functions of their own (Graph::AddInput and its like): nothing is inferred.
#pragma once

#include "ir/op.h"

namespace quern::ir {

inline OpDef* Leaf(const char* name, const char* doc, std::vector<AttrDef> attributes) {
  auto* op = new OpDef{};
  op->name = name;
  op->doc = doc;
  op->kind = OpKind::kLeaf;
  op->attributes = std::move(attributes);
  op->infer = [](const InferContext&) -> StatusOr<std::vector<TensorType>> {
    return absl::InvalidArgumentError("leaves and regions are added by functions of their own");
  };
  return op;
}

}  // namespace quern::ir
