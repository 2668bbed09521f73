// Compress: the slices of x along one axis whose `condition` holds, in order; zeros follow. numpy's and ONNX's of x
// without an axis is that of x reshaped to one dimension.

#include "ir/kept.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  const std::vector<Extent> wanted = {x.dims[axis]};
  if (!context.Equal(context.operands[1].dims, wanted)) return context.ShapeError(1, ToString(wanted));
  return std::vector<TensorType>{x, CountType()};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType& type = node.results[0];
  const int64_t axis = FromStart(node.attributes.Int("axis"), type.dims.size());
  std::vector<int64_t> first = {axis}, back;
  for (int64_t d = 0; d < type.rank(); ++d) {
    if (d != axis) first.push_back(d);
    back.push_back(d == axis ? 0 : d < axis ? d + 1 : d);
  }
  const auto turned = [&](Value value, const std::vector<int64_t>& perm) {
    return axis == 0 ? value : e.Add("Transpose", {value}, {{"perm", perm}});
  };
  const Kept kept = PlacesOfKept(e, e.Sized(inputs[1], {type.dims[axis]}));
  return e.Finish({turned(AtPlaces(e, turned(inputs[0], first), kept), back), kept.count});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &condition = *context.operands[1];
  RefTensor& y = context.results[0];
  const auto axis = FromStart(context.node.attributes.Int("axis"), x.dims.size());
  std::vector<int64_t> place(x.dims[axis], -1);
  int64_t count = 0;
  for (size_t i = 0; i < place.size(); ++i) {
    if (condition.data[i] != 0) place[i] = count++;
  }
  std::vector<int64_t> index(x.dims.size());
  const int64_t all = x.elements();
  for (int64_t at = 0; at < all; ++at, NextIndex(x.dims, index)) {
    std::vector<int64_t> to = index;
    to[axis] = place[index[axis]];
    if (to[axis] >= 0) y.Take(y.Offset(to), x, at);
  }
  context.results[1].SetInteger(0, count);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_compress() {
  static const OpDef* const op = Make({
      .name = "Compress",
      .doc = "the slices along one axis whose condition holds, and how many they are; zeros follow",
      .kind = OpKind::kComposite,
      .operands =
          {{.name = "x", .shape = "rank 1 or more"},
           {.name = "condition", .kind = OperandKind::kBool, .shape = "[n], as x along axis", .own_dtype = true}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 0,
      .onnx = "Compress",
      .examples = {{{"f32[37]", "bool[37]"}},
                   {{"f16[3, 17, 5]", "bool[17]"}, {{"axis", int64_t{1}}}},
                   {{"i64[3, S]", "bool[S]"}, {{"axis", int64_t{-1}}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
