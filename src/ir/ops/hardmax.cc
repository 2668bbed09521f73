// Hardmax over one axis: 1 at the largest element, the first of equal ones, and 0 elsewhere. A NaN is larger than all.

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  if (!context.AtLeast(x.dims[axis], 1))
    return context.ShapeError(0, absl::StrFormat("1 element or more along axis %d", axis));
  return std::vector<TensorType>{x};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType& x = node.results[0];
  const int64_t axis = FromStart(node.attributes.Int("axis"), x.dims.size());
  std::vector<Extent> shape(x.dims.size(), Extent(1));
  shape[axis] = x.dims[axis];
  const Value index = e.Add("Iota", {}, {{"shape", std::move(shape)}, {"axis", axis}});
  const Value largest = e.Add("ArgMax", {inputs[0]}, {{"axis", axis}, {"keep_dim", true}});
  return e.Finish({e.Stored(e.Add("Eq", {index, largest}), x.dtype)});
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  ForEachLine(x, context.node.attributes.Int("axis"), [&](const std::vector<int64_t>& line) {
    int64_t first = line[0];
    for (const int64_t at : line) {
      const double value = x.data[at], most = x.data[first];
      if (!std::isnan(most) && (std::isnan(value) || value > most)) first = at;
    }
    for (const int64_t at : line) context.results[0].data[at] = at == first;
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_hardmax() {
  static const OpDef* const op = Make({
      .name = "Hardmax",
      .doc = "1 at the largest element along one axis, the first of equal ones, 0 elsewhere; a NaN is larger than all",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "rank 1 or more"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .onnx = "Hardmax",
      .examples = {{{"f32[2, 3]"}}, {{"f32[17, 5]"}, {{"axis", int64_t{0}}}}, {{"bf16[3, S]"}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
