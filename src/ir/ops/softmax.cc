// Softmax over one axis, with the maximum subtracted.

#include <algorithm>
#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(AxisOf(context).status());
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<int64_t> axes = {node.attributes.Int("axis")};
  const Value x = e.Wide(inputs[0]);
  const Value largest = e.Add("Reduce", {x}, {{"op", std::string("max")}, {"axes", axes}, {"keep_dim", true}});
  const Value power = e.Add("Exp", {e.Add("Sub", {x, largest})});
  const Value sum = e.Add("Reduce", {power}, {{"op", std::string("sum")}, {"axes", axes}, {"keep_dim", true}});
  return e.Finish({e.Stored(e.Add("Div", {power, sum}), node.results[0].dtype)});
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  ForEachLine(x, context.node.attributes.Int("axis"), [&](const std::vector<int64_t>& at) {
    double largest = -INFINITY, sum = 0;
    for (const int64_t i : at) largest = std::max(largest, x.data[i]);
    for (const int64_t i : at) sum += y.data[i] = std::exp(x.data[i] - largest);
    for (const int64_t i : at) y.data[i] = RoundTo(y.dtype, y.data[i] / sum);
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_softmax() {
  static const OpDef* const op = Make({
      .name = "Softmax",
      .doc = "e^x / sum e^x over one axis",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "rank 1 or more"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 1e-5,
      .onnx = "Softmax",
  });
  return *op;
}

}  // namespace quern::ir
