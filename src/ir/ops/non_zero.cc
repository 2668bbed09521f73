// NonZero: the indices of the elements that are not 0, in row-major order: a column of `indices` each, as ONNX has
// them. NaN is not 0.

#include "ir/backward.h"
#include "ir/kept.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (x.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  return std::vector<TensorType>{{DType::kI64, {Extent(x.rank()), x.elements()}}, CountType()};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent> dims = graph.type(inputs[0]).dims;
  const Extent all = node.results[0].dims[1];
  const Value x = e.Sized(inputs[0], {all});
  const Value chosen = e.Stored(x, DType::kBool);  // "not 0"
  const Kept kept = PlacesOfKept(e, chosen);
  const Value at = AtPlaces(e, e.Iota({all}), kept);
  // A position is the index of the last dimension, and what is left of it those before.
  std::vector<Value> rows(dims.size());
  Value rest = at;
  for (size_t d = dims.size(); d-- > 0;) {
    const Value size = e.Add("Size", {}, {{"extent", std::vector<Extent>{dims[d]}}});
    rows[d] = e.Sized(d == 0 ? rest : e.Add("Mod", {rest, size}), {Extent(1), all});
    if (d > 0) rest = e.Add("Div", {rest, size});
  }
  const Value indices = rows.size() == 1 ? rows[0] : e.Add("Concat", rows, {{"axis", int64_t{0}}});
  return e.Finish({indices, kept.count});
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& indices = context.results[0];
  const int64_t all = x.elements();
  std::vector<int64_t> index(x.dims.size());
  int64_t count = 0;
  for (int64_t at = 0; at < all; ++at, NextIndex(x.dims, index)) {
    const bool zero = IsInteger(x.dtype) ? x.Integer(at) == 0 : x.data[at] == 0;
    if (zero) continue;
    for (size_t d = 0; d < index.size(); ++d) indices.SetInteger(static_cast<int64_t>(d) * all + count, index[d]);
    ++count;
  }
  context.results[1].SetInteger(0, count);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_non_zero() {
  static const OpDef* const op = Make({
      .name = "NonZero",
      .doc = "the indices of what is not 0, [rank, elements], and how many they are; zeros follow",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .shape = "rank 1 or more"}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 0,
      .onnx = "NonZero",
      .examples = {{{"bool[37]"}}, {{"i32[3, 5, 7]"}}, {{"f32[S, 3]"}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
