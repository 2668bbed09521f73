// The KIR expression of any value of a region: a walk from the value back to what is given (region inputs, results of
// the root, rows kept in scratch), asking each op on the way for its element map.
//
// Values with several uses become `let`s in front of the statement being built, so that an expression stays as long as
// the graph and does not double at each use.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "ir/graph.h"
#include "ir/op.h"
#include "kir/kir.h"

namespace quern::codegen {

class FusedExpr {
 public:
  // Makes the read of a given value at an index; with `otherwise`, where the index may lie outside.
  using Source = std::function<kir::ExprRef(const kir::Index& at, const kir::ExprRef& otherwise)>;

  explicit FusedExpr(const ir::Graph& body);

  // Declares `value` as given. Replaces an earlier declaration.
  void Provide(ir::Value value, Source source);
  bool Provided(ir::Value value) const { return sources_.contains(value); }

  // Statements that later expressions need are appended to `block` until the next call; null: nothing is shared.
  void ShareIn(kir::Block* block);

  // The element of `value` at `at`, in the value's own dtype.
  kir::ExprRef Element(ir::Value value, const kir::Index& at, const kir::ExprRef& otherwise = nullptr);
  // The same with nothing put in the block: for an index that exists within the expression only, as a reduction's does.
  kir::ExprRef InnerElement(ir::Value value, const kir::Index& at);

 private:
  class Context;

  const ir::Graph& body_;
  std::map<ir::Value, Source> sources_;
  std::vector<int> uses_;
  kir::Block* block_ = nullptr;
  std::map<std::pair<ir::Value, std::string>, kir::ExprRef> shared_;
  int next_name_ = 0;
};

}  // namespace quern::codegen
