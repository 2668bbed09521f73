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
  op->infer = [](const InferContext& context) -> StatusOr<std::vector<TensorType>> {
    return context.Error(DiagnosticCode::kUnsupported, "", "", "adding one by name, without what it holds,");
  };
  return op;
}

}  // namespace quern::ir
