// Cast: conversion of values. Float to integer saturates and takes NaN to 0; narrowing floats rounds to nearest even;
// to bool is "not 0".

#include <algorithm>
#include <cmath>

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

// The range of an integer dtype, in doubles.
void Limits(DType dtype, double& low, double& high) {
  const int bits = ScalarBytes(dtype) * 8;
  low = IsUnsigned(dtype) ? 0 : -std::ldexp(1.0, bits - 1);
  high = std::ldexp(1.0, IsUnsigned(dtype) ? bits : bits - 1) - 1;
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const DType to = context.attributes.Type("to");
  if (IsBlock(to) || IsBlock(context.operands[0].dtype)) {
    return absl::InvalidArgumentError("Cast: block formats are converted by Quantize and by the ops that read them");
  }
  return std::vector<TensorType>{{to, context.operands[0].dims}};
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  for (size_t i = 0; i < x.data.size(); ++i) {
    double value = x.data[i];
    if (IsFloat(x.dtype) && IsInteger(y.dtype)) {
      double low, high;
      Limits(y.dtype, low, high);
      value = std::isnan(value) ? 0 : std::clamp(std::trunc(value), low, high);
    }
    y.data[i] = RoundTo(y.dtype, value);
  }
  return absl::OkStatus();
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
      .reference = Reference,
      .onnx = "Cast",
  });
  return *op;
}

}  // namespace quern::ir
