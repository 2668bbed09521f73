// RmsNorm: x gamma / sqrt(mean(x^2) + eps) + beta over the last axis; beta may be absent.

#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckNorm(context, 1));
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value x = e.Wide(inputs[0]);
  const DType dtype = graph.type(x).dtype;
  const Value mean = e.Reduced("mean", e.Add("Mul", {x, x}), {-1});
  const Value r = e.Add("Rsqrt", {e.Add("Add", {mean, e.Scalar(node.attributes.Float("eps"), dtype)})});
  const Value y = ScaleAndShift(e, e.Add("Mul", {x, r}), inputs.subspan(1));
  return e.Finish({e.Stored(y, node.results[0].dtype)});
}

Status Reference(RefContext& context) {
  ReferenceNorm(*context.operands[0], std::span(context.operands).subspan(1), /*centred=*/false,
                context.node.attributes.Float("eps"), context.results[0]);
  return absl::OkStatus();
}

Status Magnitude(RefContext& context) {
  MagnitudeOfNorm(*context.operands[0], std::span(context.operands).subspan(1), /*centred=*/false,
                  context.node.attributes.Float("eps"), context.results[0]);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_rms_norm() {
  static const OpDef* const op = Make({
      .name = "RmsNorm",
      .doc = "x gamma / sqrt(mean(x^2) + eps) + beta over the last axis",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[.., N]"},
                   {.name = "gamma", .kind = OperandKind::kFloat, .shape = "[N]"},
                   {.name = "beta", .kind = OperandKind::kFloat, .shape = "[N]", .optional = true}},
      .attributes = {{.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 1e-5,
      .magnitude = Magnitude,
      .onnx = "RMSNormalization",
  });
  return *op;
}

}  // namespace quern::ir
