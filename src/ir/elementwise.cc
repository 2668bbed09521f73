// The factory of elementwise ops: from a scalar body and a scalar reference it derives inference (broadcasting), the
// index map and the reference over tensors.

#include <algorithm>

#include "base/check.h"
#include "ir/shape.h"
#include "ir/spelled_out.h"
#include "kir/build.h"
#include "kir/operators.h"

namespace quern::ir {
namespace {

// An OpDef holds plain function pointers, so the spec of an op travels in the class that its OpDef is the base of.
struct ElementwiseOp : OpDef {
  ElementwiseSpec spec;
};

const ElementwiseSpec& SpecOf(const Node& node) { return static_cast<const ElementwiseOp*>(node.op)->spec; }

StatusOr<std::vector<TensorType>> InferBroadcast(const InferContext& context) {
  std::vector<Extent> dims = context.operands[0].dims;
  for (size_t i = 1; i < context.operands.size(); ++i) {
    QUERN_ASSIGN(dims, context.Broadcast(static_cast<int>(i), dims));
  }
  return std::vector<TensorType>{{context.operands.back().dtype, std::move(dims)}};
}

// Of a c64 a real number.
StatusOr<std::vector<TensorType>> InferReal(const InferContext& context) {
  QUERN_ASSIGN(std::vector<TensorType> types, InferBroadcast(context));
  if (IsComplex(types[0].dtype)) types[0].dtype = DType::kF32;
  return types;
}

StatusOr<std::vector<TensorType>> InferBroadcastToBool(const InferContext& context) {
  QUERN_ASSIGN(std::vector<TensorType> types, InferBroadcast(context));
  types[0].dtype = DType::kBool;
  return types;
}

kir::ExprRef MapElementwise(MapContext& context) {
  std::vector<kir::ExprRef> args;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    args.push_back(Widened(BroadcastOperand(context, static_cast<int>(i))));
  }
  const ElementwiseSpec& spec = SpecOf(context.node());
  const kir::ExprRef value = spec.body != nullptr ? spec.body(args) : spec.body_by(context.node().attributes, args[0]);
  return kir::build::CastTo(context.result_type().dtype, value);
}

// Where the last operands are c64; a condition before them is not.
void ReferenceOfComplex(const ElementwiseSpec& spec, RefContext& context) {
  RefTensor& result = context.results[0];
  const int64_t elements = result.elements();
  std::vector<int64_t> index(result.dims.size());
  const size_t first = spec.first_is_condition ? 1 : 0;
  for (int64_t at = 0; at < elements; ++at, NextIndex(result.dims, index)) {
    std::complex<double> args[2] = {};
    for (size_t i = first; i < context.operands.size(); ++i)
      args[i - first] = context.operands[i]->Complex(context.operands[i]->Offset(index));
    const std::complex<double> value = !spec.first_is_condition              ? spec.complex_reference(args[0], args[1])
                                       : context.operands[0]->At(index) != 0 ? args[0]
                                                                             : args[1];
    if (IsComplex(result.dtype))
      result.SetComplex(at, value);
    else
      result.data[at] = value.real();
  }
}

// Integers by the integer reference, and bools where there is no other; everything else in double.
Status ReferenceElementwise(RefContext& context) {
  const ElementwiseSpec& spec = SpecOf(context.node);
  const bool exact = IsInteger(context.operands.back()->dtype) || (spec.reference == nullptr && !spec.reference_by);
  RefTensor& result = context.results[0];
  if (IsComplex(context.operands.back()->dtype)) {
    ReferenceOfComplex(spec, context);
    return absl::OkStatus();
  }
  const int64_t elements = result.elements();
  std::vector<int64_t> index(result.dims.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(result.dims, index)) {
    if (!exact) {
      double args[3] = {};
      for (size_t i = 0; i < context.operands.size(); ++i) args[i] = context.operands[i]->At(index);
      result.data[at] =
          RoundTo(result.dtype, spec.reference_by != nullptr ? spec.reference_by(context.node.attributes, args[0])
                                                             : spec.reference(args[0], args[1], args[2]));
      continue;
    }
    Wide args[3] = {};
    for (size_t i = 0; i < context.operands.size(); ++i)
      args[i] = context.operands[i]->Integer(context.operands[i]->Offset(index));
    const Wide value = spec.integer_reference(args[0], args[1], args[2]);
    if (IsInteger(result.dtype))
      result.SetInteger(at, value);
    else
      result.data[at] = value != 0;
  }
  return absl::OkStatus();
}

constexpr const char* kOperandNames[] = {"a", "b", "c"};

}  // namespace

kir::ExprRef Like(const kir::ExprRef& like, double value) {
  if (IsFloat(like->dtype)) return kir::build::Num(value, like->dtype);
  return kir::build::Int(static_cast<int64_t>(value), like->dtype);
}

kir::ExprRef Odd(const kir::ExprRef& x, const kir::ExprRef& above) {
  namespace kb = kir::build;
  using namespace kir::build::operators;
  const kir::ExprRef zero = Like(x, 0);
  return kb::Select(kb::Call(kir::Op::kLt, {x, zero}), -above, kb::Select(kb::Call(kir::Op::kLt, {zero, x}), above, x));
}

kir::ExprRef BroadcastOperand(MapContext& context, int operand) {
  const std::vector<Extent>& dims = context.operand_type(operand).dims;
  const kir::Index& index = context.index();
  kir::Index at;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool stretched = dims[d] == Extent(1);
    at.push_back(stretched ? kir::build::Int(0) : index[index.size() - dims.size() + d]);
  }
  return context.Operand(operand, std::move(at));
}

namespace {

bool CallsMath(const kir::ExprRef& expr) {
  if (const auto* const cast = std::get_if<kir::Cast>(&expr->node)) return CallsMath(cast->value);
  const auto* const apply = std::get_if<kir::Apply>(&expr->node);
  return apply != nullptr &&
         (kir::Row(apply->op).math || std::ranges::any_of(apply->args, [](const auto& arg) { return CallsMath(arg); }));
}

}  // namespace

bool CallsMath(const Node& node) {
  if (node.op->map != MapElementwise) return false;
  const ElementwiseSpec& spec = SpecOf(node);
  if (!Accepts(spec.domain, DType::kF32)) return false;
  std::vector<kir::ExprRef> args;
  for (int i = 0; i < spec.arity; ++i) {
    const bool is_condition = i == 0 && spec.first_is_condition;
    args.push_back(kir::build::Ref(kOperandNames[i], is_condition ? DType::kBool : DType::kF32));
  }
  return CallsMath(spec.body != nullptr ? spec.body(args) : spec.body_by(node.attributes, args[0]));
}

const OpDef* Elementwise(const ElementwiseSpec& spec) {
  const bool by_attributes = spec.body_by != nullptr;
  QUERN_CHECK(spec.arity >= 1 && spec.arity <= (by_attributes ? 1 : 3));
  QUERN_CHECK((spec.body != nullptr) != by_attributes && by_attributes == !spec.attributes.empty());
  const bool floats = spec.reference != nullptr || spec.reference_by != nullptr;
  QUERN_CHECK(floats || spec.integer_reference != nullptr);
  QUERN_CHECK(floats || !Accepts(spec.domain, DType::kF32));
  QUERN_CHECK(spec.integer_reference != nullptr || !Accepts(spec.domain, DType::kI32));
  auto* op = new ElementwiseOp;
  op->spec = spec;
  op->name = spec.name;
  op->doc = spec.doc;
  op->kind = OpKind::kElementwise;
  for (int i = 0; i < spec.arity; ++i) op->operands.push_back({.name = kOperandNames[i], .kind = spec.domain});
  if (spec.first_is_condition) op->operands[0] = {.name = "condition", .kind = OperandKind::kBool, .own_dtype = true};
  op->attributes = spec.attributes;
  op->infer = spec.result_dtype == DType::kBool ? InferBroadcastToBool : spec.real ? InferReal : InferBroadcast;
  QUERN_CHECK(!spec.result_dtype || *spec.result_dtype == DType::kBool);
  op->map = MapElementwise;
  op->reference = ReferenceElementwise;
  op->pairs = spec.pairs;
  op->rtol = spec.rtol;
  op->atol = spec.atol;
  op->identity = spec.identity;
  op->onnx = spec.onnx;
  op->sample_low = spec.sample_low;
  op->sample_high = spec.sample_high;
  op->jumps = spec.jumps;
  return op;
}

}  // namespace quern::ir
