#include "codegen/fused_expr.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "ir/interpret.h"
#include "kir/build.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using kir::Op;

// Whether `at` lies inside `dims`, as an expression; null when no index can lie outside (a literal 0).
kir::ExprRef Inside(const std::vector<Extent>& dims, const kir::Index& at) {
  kir::ExprRef inside;
  for (size_t d = 0; d < dims.size(); ++d) {
    const kir::Const* literal = std::get_if<kir::Const>(&at[d]->node);
    if (literal != nullptr && literal->integer == 0) continue;
    const kir::ExprRef low = kb::Call(Op::kLe, {kb::Int(0), at[d]}),
                       high = kb::Call(Op::kLt, {at[d], kb::FromExtent(dims[d])});
    const kir::ExprRef both = kb::Call(Op::kAnd, {low, high});
    inside = inside == nullptr ? both : kb::Call(Op::kAnd, {inside, both});
  }
  return inside;
}

}  // namespace

kir::ExprRef Literal(const ir::Node& node) {
  const StatusOr<ir::RefTensor> value =
      ir::RefTensorFromBytes(node.results[0].dtype, std::vector<int64_t>(node.results[0].dims.size(), 1), *node.data);
  QUERN_CHECK(value.ok());
  const DType dtype = node.results[0].dtype;
  if (dtype == DType::kBool) return kb::Bool(value->data[0] != 0);
  return IsFloat(dtype) ? kb::Num(value->data[0], dtype) : kb::Int(value->integers[0], dtype);
}

class FusedExpr::Context : public ir::MapContext {
 public:
  Context(FusedExpr& owner, ir::Value value, const kir::Index& index, bool guarded)
      : owner_(owner), node_(owner.body_.node(value.node)), value_(value), index_(index), guarded_(guarded) {}

  const ir::Node& node() const override { return node_; }
  const ir::TensorType& operand_type(int operand) const override { return owner_.body_.type(node_.inputs[operand]); }
  const ir::TensorType& result_type() const override { return owner_.body_.type(value_); }
  const kir::Index& index() const override { return index_; }
  kir::ExprRef Operand(int operand, kir::Index at, kir::ExprRef otherwise) override {
    // Once an index may lie outside, every read behind it must be guarded; the value read there is never used.
    if (otherwise == nullptr && guarded_) otherwise = kb::CastTo(operand_type(operand).dtype, kb::Int(0));
    return owner_.Element(node_.inputs[operand], at, otherwise);
  }

 private:
  FusedExpr& owner_;
  const ir::Node& node_;
  ir::Value value_;
  const kir::Index& index_;
  bool guarded_;
};

void FusedExpr::Provide(ir::Value value, Source source) {
  sources_[value] = std::move(source);
  made_.clear();
}

kir::ExprRef FusedExpr::Element(ir::Value value, const kir::Index& at, const kir::ExprRef& otherwise) {
  std::vector<int> where;
  for (const kir::ExprRef& index : at) where.push_back(indices_.Number(index));
  where.push_back(indices_.Number(otherwise));
  const auto key = std::pair(value, std::move(where));
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  return made_[key] = Compute(value, at, otherwise);
}

kir::ExprRef FusedExpr::Compute(ir::Value value, const kir::Index& at, const kir::ExprRef& otherwise) {
  if (const auto source = sources_.find(value); source != sources_.end()) return source->second(at, otherwise);
  const ir::Node& node = body_.node(value.node);
  if (node.data != nullptr) return Literal(node);
  QUERN_CHECK(node.op->map != nullptr);
  Context context(*this, value, at, otherwise != nullptr);
  const kir::ExprRef result = node.op->map(context);
  const kir::ExprRef inside = otherwise == nullptr ? nullptr : Inside(body_.type(value).dims, at);
  return inside == nullptr ? result : kb::Select(inside, result, otherwise);
}

}  // namespace quern::codegen
