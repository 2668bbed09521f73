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

// The value of a constant of one element; fusion keeps larger ones outside of regions.
kir::ExprRef Literal(const ir::Node& node) {
  const StatusOr<ir::RefTensor> value =
      ir::RefTensorFromBytes(node.results[0].dtype, std::vector<int64_t>(node.results[0].dims.size(), 1), *node.data);
  QUERN_CHECK(value.ok());
  const DType dtype = node.results[0].dtype;
  if (dtype == DType::kBool) return kb::Bool(value->data[0] != 0);
  if (IsFloat(dtype)) return kb::Num(value->data[0], dtype);
  return kb::Int(static_cast<int64_t>(value->data[0]), dtype);
}

}  // namespace

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

FusedExpr::FusedExpr(const ir::Graph& body) : body_(body), uses_(body.nodes().size()) {
  for (const ir::Node& node : body.nodes()) {
    for (const ir::Value& input : node.inputs) ++uses_[input.node];
  }
}

void FusedExpr::Provide(ir::Value value, Source source) { sources_[value] = std::move(source); }

void FusedExpr::ShareIn(kir::Block* block) {
  block_ = block;
  shared_.clear();
}

kir::ExprRef FusedExpr::InnerElement(ir::Value value, const kir::Index& at) {
  kir::Block* const block = std::exchange(block_, nullptr);
  kir::ExprRef result = Element(value, at);
  block_ = block;
  return result;
}

kir::ExprRef FusedExpr::Element(ir::Value value, const kir::Index& at, const kir::ExprRef& otherwise) {
  const bool share = block_ != nullptr && uses_[value.node] > 1;
  std::string key;
  if (share) {
    for (const kir::ExprRef& index : at) absl::StrAppend(&key, kir::Print(index), ";");
    if (otherwise != nullptr) absl::StrAppend(&key, "else ", kir::Print(otherwise));
    const auto found = shared_.find({value, key});
    if (found != shared_.end()) return found->second;
  }
  kir::ExprRef result;
  if (const auto source = sources_.find(value); source != sources_.end()) {
    result = source->second(at, otherwise);
  } else {
    const ir::Node& node = body_.node(value.node);
    if (node.data != nullptr) return Literal(node);
    QUERN_CHECK(node.op->map != nullptr);
    Context context(*this, value, at, otherwise != nullptr);
    result = node.op->map(context);
    if (otherwise != nullptr) {
      const kir::ExprRef inside = Inside(body_.type(value).dims, at);
      if (inside != nullptr) result = kb::Select(inside, result, otherwise);
    }
  }
  const bool trivial =
      std::holds_alternative<kir::Const>(result->node) || std::holds_alternative<kir::NameRef>(result->node);
  if (share && !trivial) {
    const std::string name = absl::StrCat("v", next_name_++);
    block_->push_back(kb::Let(name, result));
    result = kb::Ref(name, result->dtype);
  }
  if (share) shared_[{value, key}] = result;
  return result;
}

}  // namespace quern::codegen
