// The KIR expression of any value of a region: a walk from the value back to what is given (region inputs, results of
// the root, rows kept in scratch), asking each op on the way for its element map.
//
// Expressions are graphs: an element that is asked for again at the same index is the same node. KernelWriter::Finish
// gives names to what is used several times.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"
#include "kir/intern.h"
#include "kir/kir.h"

namespace quern::codegen {

class FusedExpr {
 public:
  // Makes the read of a given value at an index; with `otherwise`, where the index may lie outside.
  using Source = std::function<kir::ExprRef(const kir::Index& at, const kir::ExprRef& otherwise)>;

  explicit FusedExpr(const ir::Graph& body) : body_(body) {}

  // Declares `value` as given. Replaces an earlier declaration.
  void Provide(ir::Value value, Source source);
  bool Provided(ir::Value value) const { return sources_.contains(value); }

  // The element of `value` at `at`, in the value's own dtype.
  kir::ExprRef Element(ir::Value value, const kir::Index& at, const kir::ExprRef& otherwise = nullptr);

 private:
  class Context;
  kir::ExprRef Compute(ir::Value value, const kir::Index& at, const kir::ExprRef& otherwise);

  const ir::Graph& body_;
  std::map<ir::Value, Source> sources_;
  kir::Interner indices_;
  std::map<std::pair<ir::Value, std::vector<int>>, kir::ExprRef> made_;  // by index and `otherwise`
};

// The element of a constant of one element.
kir::ExprRef Literal(const ir::Node& node);

}  // namespace quern::codegen
