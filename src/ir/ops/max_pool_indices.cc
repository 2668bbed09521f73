// MaxPoolIndices: where each window of a Pool of maxima has its first largest element, as ONNX's second result of
// MaxPool has it: its position in x [N, C, s..], row-major.

#include "ir/max_places.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_ASSIGN(TensorType y, InferMaxPool(context));
  y.dtype = DType::kI64;
  return std::vector<TensorType>{std::move(y)};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent> dims = graph.type(inputs[0]).dims;
  const std::vector<Extent>& pooled = node.results[0].dims;
  const Extent lines = dims[0] * dims[1];
  Extent elements(1);
  for (size_t d = 2; d < dims.size(); ++d) elements = elements * dims[d];
  const Value inside = FirstLargest(e, node.attributes, inputs[0], std::span(pooled).subspan(2));
  std::vector<Extent> by_line(pooled.size() - 1, Extent(1));
  by_line[0] = lines;
  const Value line =
      e.Add("Iota", {}, {{"shape", std::vector<Extent>{lines}}, {"axis", int64_t{0}}, {"dtype", DType::kI64}});
  const Value size = e.Add("Size", {}, {{"extent", std::vector<Extent>{elements}}});
  const Value start = e.Sized(e.Add("Mul", {line, size}), by_line);
  return e.Finish({e.Sized(e.Add("Add", {inside, start}), pooled)});
}

Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  ForEachFirstLargest(context.node.attributes, *context.operands[0], y.dims,
                      [&](int64_t place, int64_t element) { y.SetInteger(place, element); });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_max_pool_indices() {
  static const OpDef* const op = Make({
      .name = "MaxPoolIndices",
      .doc = "where each window of a Pool of maxima has its first largest element, as a position in x",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[N, C, s..]"}},
      .attributes = MaxPoolAttributes(),
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 0,
      .onnx = "MaxPool",
      .examples = {{{"f32[2, 3, 9]"}, {{"kernel", std::vector<int64_t>{3}}}},
                   {{"f32[S, 2, 7, 5]"},
                    {{"kernel", std::vector<int64_t>{3, 2}},
                     {"strides", std::vector<int64_t>{2, 2}},
                     {"pads", std::vector<int64_t>{1, 1, 1, 0}}}},
                   {{"f16[1, 2, 7, 8]"},
                    {{"kernel", std::vector<int64_t>{2, 3}}, {"strides", std::vector<int64_t>{2, 2}}, {"ceil", true}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
