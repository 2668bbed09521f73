// GatherBackward: zeros of `extents`, to which dy is added where a Gather along `axis` read with these indices, in
// order: an index that was clamped adds where it read.

#include <algorithm>
#include <cmath>

#include "ir/backward.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &dy = context.operands[0], &indices = context.operands[1];
  const std::vector<Extent>& dims = context.attributes.Extents("extents");
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t given = context.attributes.Int("axis");
  if (given < -rank || given >= rank)
    return context.AttributeError("axis", absl::StrFormat("one of the %d of extents", rank));
  const int64_t axis = FromStart(given, dims.size());
  for (const Extent& dim : dims) {
    if (!context.AtLeast(dim, 0)) return context.AttributeError("extents", "0 or more");
  }
  if (!context.AtLeast(dims[axis], 1)) return context.AttributeError("extents", "1 element or more along axis");
  std::vector<Extent> wanted(dims.begin(), dims.begin() + axis);
  wanted.insert(wanted.end(), indices.dims.begin(), indices.dims.end());
  wanted.insert(wanted.end(), dims.begin() + axis + 1, dims.end());
  if (!context.Equal(dy.dims, wanted)) return context.ShapeError(0, ToString(wanted));
  return std::vector<TensorType>{{dy.dtype, dims}};
}

// What was read comes first; rows are added up; then the axis goes back to its place.
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent>& dims = node.results[0].dims;
  const std::vector<Extent> places = graph.type(inputs[1]).dims, own = graph.type(inputs[0]).dims;
  const auto axis = FromStart(node.attributes.Int("axis"), dims.size()), rank = static_cast<int64_t>(own.size()),
             count = static_cast<int64_t>(places.size());
  std::vector<int64_t> first, back;
  for (int64_t d = 0; d < count; ++d) first.push_back(axis + d);
  for (int64_t d = 0; d < rank; ++d) {
    if (d < axis || d >= axis + count) first.push_back(d);
  }
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) back.push_back(d < axis ? d + 1 : d == axis ? 0 : d);
  Extent all(1);
  for (const Extent& place : places) all = all * place;
  std::vector<Extent> rows = {all}, turned = {dims[axis]};
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (d != axis) rows.push_back(dims[d]), turned.push_back(dims[d]);
  }
  const Term dy = Term(e, inputs[0]).Transposed(first).Sized(rows);
  const Value ids = e.Stored(e.Sized(inputs[1], {all}), DType::kI64), zero = IntegerOf(e, 0);
  const Value size = e.Add("Size", {}, {{"extent", std::vector<Extent>{dims[axis]}}});
  const Value wrapped = e.Add("Where", {e.Add("Lt", {ids, zero}), e.Add("Add", {ids, size}), ids});
  const Value last = e.Add("Sub", {size, IntegerOf(e, 1)});
  const Value sums = e.Add("ScatterAdd", {dy.value, e.Add("Clamp", {wrapped, zero, last})},
                           {{"rows", std::vector<Extent>{dims[axis]}}});
  return e.Finish({Term(e, sums).Transposed(back).value});
}

template <bool kSizes>
Status Sum(RefContext& context) {
  const RefTensor &dy = *context.operands[0], &indices = *context.operands[1];
  RefTensor& dx = context.results[0];
  const auto axis = FromStart(context.node.attributes.Int("axis"), dx.dims.size());
  const auto count = static_cast<int64_t>(indices.dims.size());
  const int64_t elements = dy.elements();
  std::vector<int64_t> index(dy.dims.size());
  for (int64_t from = 0; from < elements; ++from, NextIndex(dy.dims, index)) {
    const std::vector<int64_t> which(index.begin() + axis, index.begin() + axis + count);
    Wide id = indices.Integer(indices.Offset(which));
    if (id < 0) id += dx.dims[axis];
    std::vector<int64_t> at(index.begin(), index.begin() + axis);
    at.push_back(static_cast<int64_t>(std::clamp<Wide>(id, 0, dx.dims[axis] - 1)));
    at.insert(at.end(), index.begin() + axis + count, index.end());
    dx.data[dx.Offset(at)] += kSizes ? std::fabs(dy.data[from]) : dy.data[from];
  }
  for (double& value : dx.data) value = kSizes ? value : RoundTo(dx.dtype, value);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_gather_backward() {
  static const OpDef* const op = Make({
      .name = "GatherBackward",
      .doc = "the gradient of a Gather along `axis` of a table of `extents` in the table",
      .kind = OpKind::kComposite,
      .operands = {{.name = "dy", .kind = OperandKind::kFloat, .shape = "as Gather gives it"},
                   {.name = "indices", .kind = OperandKind::kIndex, .own_dtype = true}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                     {.name = "extents", .kind = AttrKind::kExtents, .doc = "of the table"}},
      .infer = Infer,
      .reference = Sum<false>,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Sum<true>,
      .examples = {{{"f32[5, 3]", "i32[5]"}, {{"extents", std::vector<Extent>{7, 3}}}},
                   {{"f32[2, S, 3, 5]", "i64[S, 3]"},
                    {{"axis", int64_t{1}}, {"extents", std::vector<Extent>{2, 11, 5}}}},
                   {{"f16[3, 17]", "i64[17]"}, {{"axis", int64_t{-1}}, {"extents", std::vector<Extent>{3, 2}}}}},
  });
  return *op;
}

}  // namespace quern::ir
