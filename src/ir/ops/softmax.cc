// Softmax over one axis, with the maximum subtracted.

#include <algorithm>
#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"
#include "ir/spelled_out.h"

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
  const Value largest = e.Reduced("max", x, axes);
  const Value power = e.Add("Exp", {e.Add("Sub", {x, largest})});
  const Value sum = e.Reduced("sum", power, axes);
  // One division a line, not one an element.
  return e.Finish({e.Stored(e.Add("Mul", {power, e.Add("Recip", {sum})}), node.results[0].dtype)});
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
      .examples = {{{"f32[2, 3]"}}},
  });
  return *op;
}

// What Expand makes, found again; divided by the sum instead of multiplied by its inverse, too.
std::optional<SpelledSoftmax> AsSoftmax(const Graph& graph, const Node& node) {
  const auto is = [](const Node& n, std::string_view name) { return n.op->name == name; };
  const auto along = [&](const Node& n, std::string_view op) -> std::optional<int64_t> {
    if (!is(n, "Reduce") || n.attributes.String("op") != op || !n.attributes.Bool("keep_dim")) return std::nullopt;
    const std::vector<int64_t>& axes = n.attributes.Ints("axes");
    if (axes.size() != 1) return std::nullopt;
    return FromStart(axes[0], graph.type(n.inputs[0]).dims.size());
  };
  const bool product = is(node, "Mul");
  if (!product && !is(node, "Div")) return std::nullopt;
  for (const int first : {0, 1}) {
    if (first == 1 && !product) break;
    const Value power = node.inputs[first];
    Value sum = node.inputs[1 - first];
    SpelledSoftmax found;
    found.inside = {power.node, sum.node};
    if (product) {
      if (!is(graph.node(sum.node), "Recip")) continue;
      sum = graph.node(sum.node).inputs[0];
      found.inside.push_back(sum.node);
    }
    const std::optional<int64_t> summed = along(graph.node(sum.node), "sum");
    if (!summed || graph.node(sum.node).inputs[0] != power || !is(graph.node(power.node), "Exp")) continue;
    const Value shifted = graph.node(power.node).inputs[0];
    if (!is(graph.node(shifted.node), "Sub")) continue;
    const Value x = graph.node(shifted.node).inputs[0], largest = graph.node(shifted.node).inputs[1];
    if (along(graph.node(largest.node), "max") != summed || graph.node(largest.node).inputs[0] != x) continue;
    found.x = x, found.axis = *summed;
    found.inside.insert(found.inside.end(), {shifted.node, largest.node});
    return found;
  }
  return std::nullopt;
}

}  // namespace quern::ir
