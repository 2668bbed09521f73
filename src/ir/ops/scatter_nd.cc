// ScatterND: x with slices of `updates` at places of several dimensions. The last dimension of `indices` holds an index
// for each of the first dimensions of x, as many as there are. A negative index counts from the end; a slice for a
// place outside is dropped. `reduction` as of ScatterElements.
//
//   x [d.., r..], indices [p.., m], updates [p.., r..], of m dimensions d

#include "ir/scatter.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &indices = context.operands[1], &updates = context.operands[2];
  if (x.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  if (x.dtype == DType::kBool && context.attributes.String("reduction") != "none")
    return context.DTypeError(0, "a number to reduce");
  if (indices.rank() < 1 || !indices.dims.back().is_constant()) return context.ShapeError(1, "[.., a number]");
  const int64_t depth = indices.dims.back().constant();
  if (depth < 1 || depth > x.rank()) return context.ShapeError(1, absl::StrFormat("[.., 1 to %d]", x.rank()));
  std::vector<Extent> wanted(indices.dims.begin(), indices.dims.end() - 1);
  wanted.insert(wanted.end(), x.dims.begin() + depth, x.dims.end());
  if (!context.Equal(updates.dims, wanted)) return context.ShapeError(2, ToString(wanted));
  return std::vector<TensorType>{x};
}

ScatterPlaces Places(const Node&, int x, int indices, int update) {
  const int places = indices - 1, depth = x - (update - places);
  ScatterPlaces made;
  for (int d = 0; d < places; ++d) made.walked.push_back(d);
  for (int d = 0; d < depth; ++d) made.named.push_back(d);
  for (int d = depth; d < x; ++d) made.free.emplace_back(d - depth + places, d);
  return made;
}

constexpr ScatterDef kScatter = {Places};

}  // namespace

const OpDef& Op_scatter_nd() {
  static const OpDef* const op = Make({
      .name = "ScatterND",
      .doc = "x with slices of `updates` at places of several dimensions",
      .kind = OpKind::kWrite,
      .family = "update",
      .operands = {{.name = "x", .shape = "[d.., r..]"},
                   {.name = "indices", .kind = OperandKind::kIndex, .shape = "[p.., m]", .own_dtype = true},
                   {.name = "updates", .shape = "[p.., r..]"}},
      .attributes = {{.name = "reduction",
                      .kind = AttrKind::kString,
                      .default_value = std::string("none"),
                      .choices = {"none", "add", "mul", "max", "min"}}},
      .infer = Infer,
      .scatter = &kScatter,
      .reference = ReferenceScatter,
      .expand = WidenedScatter,
      .expands = ScatterIsWidened,
      .rtol = 2e-5,
      .magnitude = MagnitudeOfScatter,
      .onnx = "ScatterND",
      .examples = {{{"f32[5, 7]", "i64[3, 1]", "f32[3, 7]"}, {{"reduction", std::string("add")}}},
                   {{"f32[5, 7, 3]", "i32[2, 11, 2]", "f32[2, 11, 3]"}},
                   {{"u8[13]", "i64[S, 1]", "u8[S]"}, {{"reduction", std::string("max")}}},
                   {{"f16[3, 5]", "i32[7, 2]", "f16[7]"}, {{"reduction", std::string("mul")}}}},
  });
  return *op;
}

}  // namespace quern::ir
