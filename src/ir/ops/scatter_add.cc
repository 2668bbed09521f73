// ScatterAdd: `rows` rows of zeros, to which row u of `updates` is added at indices[u]. An index outside is dropped, a
// negative one counts from the end. Rows of one index are added in order.

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  if (result.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  const std::vector<Extent>& rows = context.attributes.Extents("rows");
  if (rows.size() != 1 || !context.AtLeast(rows[0], 0)) return context.AttributeError("rows", "one extent");
  const std::vector<Extent> wanted = {result.dims[0]};
  if (!context.Equal(context.operands[1].dims, wanted)) return context.ShapeError(1, ToString(wanted));
  result.dims[0] = rows[0];
  return std::vector<TensorType>{std::move(result)};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value updates = e.Wide(inputs[0]);
  if (!e.ok()) return e.Finish({});
  const DType dtype = e.type(updates).dtype;
  const Value zero = e.Add("Cast", {e.Scalar(0, DType::kF64)}, {{"to", dtype}});
  const Value zeros = e.Add("Expand", {zero}, {{"shape", node.results[0].dims}});
  const Value indices = e.Sized(inputs[1], {graph.type(inputs[1]).dims[0], Extent(1)});
  const Value sums = e.Add("ScatterND", {zeros, indices, updates}, {{"reduction", std::string("add")}});
  return e.Finish({e.Stored(sums, node.results[0].dtype)});
}

template <typename Add>
void ForEachRow(const RefContext& context, const Add& add) {
  const RefTensor &updates = *context.operands[0], &indices = *context.operands[1];
  const RefTensor& y = context.results[0];
  const int64_t rows = updates.dims[0], width = rows == 0 ? 0 : updates.elements() / rows;
  for (int64_t u = 0; u < rows; ++u) {
    Wide row = indices.Integer(u);
    if (row < 0) row += y.dims[0];
    if (row < 0 || row >= y.dims[0]) continue;
    for (int64_t c = 0; c < width; ++c) add(static_cast<int64_t>(row) * width + c, u * width + c);
  }
}

Status Reference(RefContext& context) {
  const RefTensor& updates = *context.operands[0];
  RefTensor& y = context.results[0];
  ForEachRow(context, [&](int64_t to, int64_t from) {
    if (IsInteger(y.dtype))
      y.SetInteger(to, y.Integer(to) + updates.Integer(from));
    else
      y.data[to] += updates.data[from];
  });
  for (double& value : y.data) value = RoundTo(y.dtype, value);
  return absl::OkStatus();
}

Status Magnitude(RefContext& context) {
  ForEachRow(context, [&](int64_t to, int64_t from) {
    context.results[0].data[to] += std::fabs(context.operands[0]->data[from]);
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_scatter_add() {
  static const OpDef* const op = Make({
      .name = "ScatterAdd",
      .doc = "rows of zeros to which the rows of `updates` are added at the places that `indices` names",
      .kind = OpKind::kComposite,
      .operands = {{.name = "updates", .kind = OperandKind::kNumeric, .shape = "[U, ..]"},
                   {.name = "indices", .kind = OperandKind::kIndex, .shape = "[U]", .own_dtype = true}},
      .attributes = {{.name = "rows", .kind = AttrKind::kExtents, .doc = "one extent"}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Magnitude,
      .examples = {{{"f32[17, 5]", "i64[17]"}, {{"rows", std::vector<Extent>{7}}}},
                   {{"f16[S]", "i32[S]"}, {{"rows", std::vector<Extent>{3}}}},
                   {{"i8[11, 2, 3]", "i32[11]"}, {{"rows", std::vector<Extent>{Extent::Symbol("S")}}}}},
  });
  return *op;
}

}  // namespace quern::ir
