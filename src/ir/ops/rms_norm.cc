// RmsNorm: x gamma / sqrt(mean(x^2) + eps) + beta over the last axis; beta may be absent.

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (x.rank() < 1) return absl::InvalidArgumentError("RmsNorm: x has no axis");
  for (size_t i = 1; i < context.operands.size(); ++i) {
    if (context.operands[i].dims != std::vector<Extent>{x.dims.back()}) {
      return absl::InvalidArgumentError(absl::StrFormat("RmsNorm: %s is %s, [%s] expected", i == 1 ? "gamma" : "beta",
                                                        context.operands[i].ToString(), x.dims.back().ToString()));
    }
  }
  return std::vector<TensorType>{x};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value x = inputs[0];
  const DType dtype = graph.type(x).dtype;
  const Value mean = e.Add("Reduce", {e.Add("Mul", {x, x})},
                           {{"op", std::string("mean")}, {"axes", std::vector<int64_t>{-1}}, {"keep_dim", true}});
  const Value r = e.Add("Rsqrt", {e.Add("Add", {mean, e.Scalar(node.attributes.Float("eps"), dtype)})});
  Value y = e.Add("Mul", {e.Add("Mul", {x, r}), inputs[1]});
  if (inputs.size() > 2) y = e.Add("Add", {y, inputs[2]});
  return e.Finish({y});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &gamma = *context.operands[1];
  const RefTensor* beta = context.operands.size() > 2 ? context.operands[2] : nullptr;
  RefTensor& y = context.results[0];
  const double eps = context.node.attributes.Float("eps");
  ForEachLine(x, -1, [&](const std::vector<int64_t>& at) {
    double sum = 0;
    for (const int64_t i : at) sum += x.data[i] * x.data[i];
    const double r = 1 / std::sqrt(sum / static_cast<double>(at.size()) + eps);
    for (size_t c = 0; c < at.size(); ++c) {
      y.data[at[c]] = RoundTo(y.dtype, x.data[at[c]] * r * gamma.data[c] + (beta != nullptr ? beta->data[c] : 0));
    }
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_rms_norm() {
  static const OpDef* const op = Make({
      .name = "RmsNorm",
      .doc = "x gamma / sqrt(mean(x^2) + eps) + beta over the last axis",
      .family = Family::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat},
                   {.name = "gamma", .kind = OperandKind::kFloat},
                   {.name = "beta", .kind = OperandKind::kFloat, .optional = true}},
      .attributes = {{.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 1e-5,
      .atol = 1e-5,
      .onnx = "RMSNormalization",
  });
  return *op;
}

}  // namespace quern::ir
