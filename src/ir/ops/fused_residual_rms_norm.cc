// FusedResidualRmsNorm: RmsNorm(x + residual), and the sum itself as a second result.

#include <cmath>

#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  if (!context.Equal(context.operands[0].dims, context.operands[1].dims))
    return context.ShapeError(1, ToString(context.operands[0].dims));
  QUERN_RETURN_IF_ERROR(CheckNorm(context, 2));
  return std::vector<TensorType>{context.operands[0], context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value sum = e.Add("Add", {inputs[0], inputs[1]});
  std::vector<Value> operands = {sum, inputs[2]};
  if (inputs.size() > 3) operands.push_back(inputs[3]);
  return e.Finish({e.Add("RmsNorm", std::move(operands), {{"eps", node.attributes.Float("eps")}}), sum});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &residual = *context.operands[1];
  RefTensor& sum = context.results[1];
  for (size_t i = 0; i < sum.data.size(); ++i) sum.data[i] = RoundTo(sum.dtype, x.data[i] + residual.data[i]);
  ReferenceNorm(sum, std::span(context.operands).subspan(2), /*centred=*/false, context.node.attributes.Float("eps"),
                context.results[0]);
  return absl::OkStatus();
}

Status Magnitude(RefContext& context) {
  const RefTensor &x = *context.operands[0], &residual = *context.operands[1];
  RefTensor& sum = context.results[1];
  for (size_t i = 0; i < sum.data.size(); ++i) sum.data[i] = std::fabs(x.data[i]) + std::fabs(residual.data[i]);
  MagnitudeOfNorm(sum, std::span(context.operands).subspan(2), /*centred=*/false, context.node.attributes.Float("eps"),
                  context.results[0]);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_fused_residual_rms_norm() {
  static const OpDef* const op = Make({
      .name = "FusedResidualRmsNorm",
      .doc = "RmsNorm(x + residual) and the sum",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[.., N]"},
                   {.name = "residual", .kind = OperandKind::kFloat, .shape = "as x"},
                   {.name = "gamma", .kind = OperandKind::kFloat, .shape = "[N]"},
                   {.name = "beta", .kind = OperandKind::kFloat, .shape = "[N]", .optional = true}},
      .attributes = {{.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 1e-5,
      .magnitude = Magnitude,
  });
  return *op;
}

}  // namespace quern::ir
