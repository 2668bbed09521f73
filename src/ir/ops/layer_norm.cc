// LayerNorm: (x - mean) gamma / sqrt(variance + eps) + beta over the last axis, with the biased variance.

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (x.rank() < 1) return absl::InvalidArgumentError("LayerNorm: x has no axis");
  for (size_t i = 1; i < context.operands.size(); ++i) {
    if (context.operands[i].dims != std::vector<Extent>{x.dims.back()}) {
      return absl::InvalidArgumentError(absl::StrFormat("LayerNorm: %s is %s, [%s] expected", i == 1 ? "gamma" : "beta",
                                                        context.operands[i].ToString(), x.dims.back().ToString()));
    }
  }
  return std::vector<TensorType>{x};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const DType dtype = graph.type(inputs[0]).dtype;
  const Attributes mean_of_row = {{"op", std::string("mean")}, {"axes", std::vector<int64_t>{-1}}, {"keep_dim", true}};
  const Value centred = e.Add("Sub", {inputs[0], e.Add("Reduce", {inputs[0]}, mean_of_row)});
  const Value variance = e.Add("Reduce", {e.Add("Mul", {centred, centred})}, mean_of_row);
  const Value r = e.Add("Rsqrt", {e.Add("Add", {variance, e.Scalar(node.attributes.Float("eps"), dtype)})});
  Value y = e.Add("Mul", {e.Add("Mul", {centred, r}), inputs[1]});
  if (inputs.size() > 2) y = e.Add("Add", {y, inputs[2]});
  return e.Finish({y});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &gamma = *context.operands[1];
  const RefTensor* beta = context.operands.size() > 2 ? context.operands[2] : nullptr;
  RefTensor& y = context.results[0];
  const double eps = context.node.attributes.Float("eps");
  ForEachLine(x, -1, [&](const std::vector<int64_t>& at) {
    const double n = static_cast<double>(at.size());
    double mean = 0, variance = 0;
    for (const int64_t i : at) mean += x.data[i] / n;
    for (const int64_t i : at) variance += (x.data[i] - mean) * (x.data[i] - mean) / n;
    for (size_t c = 0; c < at.size(); ++c) {
      const double normal = (x.data[at[c]] - mean) / std::sqrt(variance + eps);
      y.data[at[c]] = RoundTo(y.dtype, normal * gamma.data[c] + (beta != nullptr ? beta->data[c] : 0));
    }
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_layer_norm() {
  static const OpDef* const op = Make({
      .name = "LayerNorm",
      .doc = "(x - mean) gamma / sqrt(variance + eps) + beta over the last axis",
      .family = Family::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat},
                   {.name = "gamma", .kind = OperandKind::kFloat},
                   {.name = "beta", .kind = OperandKind::kFloat, .optional = true}},
      .attributes = {{.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 2e-5,
      .atol = 2e-5,
      .onnx = "LayerNormalization",
  });
  return *op;
}

}  // namespace quern::ir
