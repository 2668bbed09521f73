// LayerNormBackwardBeta: the sum of dy over the rows, the gradient of a norm in beta.

#include <cmath>

#include "ir/backward.h"
#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& dy = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  return std::vector<TensorType>{{dy.dtype, {dy.dims.begin() + axis, dy.dims.end()}}};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  std::vector<int64_t> rows;
  const size_t rank = graph.type(inputs[0]).dims.size();
  for (int64_t d = 0; d < FromStart(node.attributes.Int("axis"), rank); ++d) rows.push_back(d);
  const Term sum = Term::Wide(e, inputs[0]).Sum(rows).Sized(node.results[0].dims);
  return e.Finish({e.Stored(sum.value, node.results[0].dtype)});
}

template <bool kSizes>
Status Sum(RefContext& context) {
  const RefTensor& dy = *context.operands[0];
  RefTensor& sum = context.results[0];
  for (size_t i = 0; i < dy.data.size(); ++i)
    sum.data[i % sum.data.size()] += kSizes ? std::fabs(dy.data[i]) : dy.data[i];
  for (double& value : sum.data) value = kSizes ? value : RoundTo(sum.dtype, value);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_layer_norm_backward_beta() {
  static const OpDef* const op = Make({
      .name = "LayerNormBackwardBeta",
      .doc = "the gradient of a norm in beta",
      .kind = OpKind::kComposite,
      .operands = {{.name = "dy", .kind = OperandKind::kFloat, .shape = "[.., N..]"}},
      .attributes = {NormAxisAttribute()},
      .infer = Infer,
      .reference = Sum<false>,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Sum<true>,
      .examples = {{{"f32[3, 7]"}}, {{"f32[S, 3, 5]"}, {{"axis", int64_t{1}}}}, {{"bf16[11, 5]"}}},
  });
  return *op;
}

}  // namespace quern::ir
