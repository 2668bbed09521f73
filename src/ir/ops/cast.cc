// Cast: conversion of values. Float to integer saturates and takes NaN to 0; narrowing floats rounds to nearest even;
// to bool is "not 0".

#include <algorithm>
#include <cmath>

#include "ir/identity.h"
#include "ir/pairs.h"
#include "ir/shape.h"
#include "ir/spelled_out.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const DType to = context.attributes.Type("to");
  if (IsBlock(to)) return context.AttributeError("to", "a scalar dtype");
  if (IsComplex(context.operands[0].dtype) && !IsComplex(to))
    return context.DTypeError(0, "a real number, as Real or Abs make one");
  return std::vector<TensorType>{{to, context.operands[0].dims}};
}

// A double that rounds to 32 bits and fewer as `value` does: what more than 53 bits lose sets the last one.
double Odd(Wide value) {
  const Wide magnitude = value < 0 ? -value : value;
  int lost = 0;
  while (magnitude >> lost >> 53 != 0) ++lost;
  const Wide kept = magnitude >> lost, rest = magnitude - (kept << lost);
  const double odd = std::ldexp(static_cast<double>(rest != 0 ? kept | 1 : kept), lost);
  return value < 0 ? -odd : odd;
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const int64_t elements = x.elements();
  for (int64_t at = 0; at < elements; ++at) {
    if (IsComplex(y.dtype))
      y.SetComplex(at, IsComplex(x.dtype) ? x.Complex(at) : x.Real(at));
    else if (IsInteger(y.dtype))
      y.SetInteger(at, IsFloat(x.dtype) ? Saturated(y.dtype, x.data[at]) : x.Integer(at));
    else if (IsInteger(x.dtype))
      y.data[at] = y.dtype == DType::kF64 ? x.Real(at) : RoundOnce(y.dtype, Odd(x.Integer(at)));
    else
      y.data[at] = x.dtype == DType::kF64 ? RoundOnce(y.dtype, x.data[at]) : RoundTo(y.dtype, x.data[at]);
  }
  return absl::OkStatus();
}

// A real number has no imaginary part.
StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  if (context.IsPair(0)) return e.Finish({context.x[0]});
  const Value re = e.Stored(context.x[0], DType::kF32);
  return e.Finish({PairsOf(e, {re, e.Add("Expand", {e.Scalar(0, DType::kF32)}, {{"shape", context.types[0].dims}})})});
}

}  // namespace

const OpDef& Op_cast() {
  static const OpDef* const op = Make({
      .name = "Cast",
      .doc = "conversion of values; float to integer saturates, NaN becomes 0",
      .kind = OpKind::kElementwise,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "to", .kind = AttrKind::kDType}},
      .infer = Infer,
      .map = [](MapContext& c) { return kir::build::CastTo(c.result_type().dtype, c.Operand(0, c.index())); },
      .identity = Unchanged,
      .reference = Reference,
      .pairs = Pairs,
      .onnx = "Cast",
      .examples = {{{"f32[2, 3]"}, {{"to", DType::kI32}}}, {{"i64[S, 3]"}, {{"to", DType::kF16}}}},
  });
  return *op;
}

StatusOr<Value> MakeCopy(const MakeNode& make, Value x, DType dtype) { return make("Cast", {x}, {{"to", dtype}}); }

bool IsCast(const Node& node) { return node.op == &Op_cast(); }

std::optional<Value> AsWidened(const Graph& graph, const Node& node) {
  if (!IsCast(node) || node.results[0].dtype != DType::kF32) return std::nullopt;
  const DType stored = graph.type(node.inputs[0]).dtype;
  if (stored != DType::kF16 && stored != DType::kBF16) return std::nullopt;
  return node.inputs[0];
}

}  // namespace quern::ir
