// ScatterElements: x with element i of `updates` at [i.., indices[i], i..], where `indices` gives the place along one
// axis. A negative index counts from the end; an element for a place outside is dropped. `reduction` says how an
// element joins the one that lies there; of several for one place they come in row-major order, so the last stays
// where they replace each other.

#include "ir/scatter.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &indices = context.operands[1], &updates = context.operands[2];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  if (x.dtype == DType::kBool && context.attributes.String("reduction") != "none")
    return context.DTypeError(0, "a number to reduce");
  bool fits = indices.rank() == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = d == axis || context.AtLeast(x.dims[d], indices.dims[d]);
  if (!fits)
    return context.ShapeError(1, absl::StrFormat("no dimension longer than %s but axis %d", ToString(x.dims), axis));
  if (!context.Equal(updates.dims, indices.dims)) return context.ShapeError(2, ToString(indices.dims));
  return std::vector<TensorType>{x};
}

ScatterPlaces Places(const Node& node, int rank, int, int) {
  const int axis = static_cast<int>(FromStart(node.attributes.Int("axis"), rank));
  ScatterPlaces places{.walked = {axis}, .free = {}, .named = {axis}, .by_element = true};
  for (int d = 0; d < rank; ++d) {
    if (d != axis) places.free.emplace_back(d, d);
  }
  return places;
}

constexpr ScatterDef kScatter = {Places};

}  // namespace

const OpDef& Op_scatter_elements() {
  static const OpDef* const op = Make({
      .name = "ScatterElements",
      .doc = "x with elements of `updates` at the places that `indices` names along one axis",
      .kind = OpKind::kWrite,
      .family = "update",
      .operands = {{.name = "x", .shape = "rank 1 or more"},
                   {.name = "indices",
                    .kind = OperandKind::kIndex,
                    .shape = "no longer than x but along axis",
                    .own_dtype = true},
                   {.name = "updates", .shape = "as indices"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                     {.name = "reduction",
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
      .onnx = "ScatterElements",
      .examples = {{{"f32[5, 7]", "i64[3, 7]", "f32[3, 7]"}, {{"reduction", std::string("add")}}},
                   {{"i16[S, 7]", "i32[S, 11]", "i16[S, 11]"},
                    {{"axis", int64_t{-1}}, {"reduction", std::string("max")}}},
                   {{"f32[3, 5, 2]", "i32[2, 11, 1]", "f32[2, 11, 1]"}, {{"axis", int64_t{1}}}},
                   {{"f32[13]", "i64[17]", "f32[17]"}, {{"reduction", std::string("min")}}},
                   {{"bf16[2, 3, 5, 7]", "i32[2, 3, 3, 7]", "bf16[2, 3, 3, 7]"},
                    {{"axis", int64_t{2}}, {"reduction", std::string("add")}}}},
  });
  return *op;
}

}  // namespace quern::ir
