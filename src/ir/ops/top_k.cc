// TopK: the k largest elements along one axis, or the k smallest, and where they stood, in order: the best first, of
// equal ones the first. A NaN is the largest. Without `sorted` any order will do; it is the same one.

#include "ir/shape.h"
#include "ir/sort.h"

namespace quern::ir {
namespace {

bool Largest(const Node& node) { return node.attributes.Bool("largest"); }

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  const int64_t k = context.attributes.Int("k");
  if (k < 0 || !context.AtLeast(result.dims[axis], k))
    return context.AttributeError("k", absl::StrFormat("0 to %s", result.dims[axis].ToString()));
  result.dims[axis] = k;
  return std::vector<TensorType>{result, {DType::kI64, result.dims}};
}

constexpr SortDef kSort = {Largest};

}  // namespace

const OpDef& Op_top_k() {
  static const OpDef* const op = Make({
      .name = "TopK",
      .doc = "the k largest or smallest elements along one axis, and where they stood",
      .kind = OpKind::kRoot,
      .family = "sort",
      .operands = {{.name = "x", .shape = "rank 1 or more"}},
      .attributes = {{.name = "k", .kind = AttrKind::kInt},
                     {.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}},
                     {.name = "largest", .kind = AttrKind::kBool, .default_value = true},
                     {.name = "sorted", .kind = AttrKind::kBool, .default_value = true}},
      .infer = Infer,
      .sort = &kSort,
      .reference = [](RefContext& context) { return ReferenceOrder(context, Largest(context.node)); },
      .expand = OrderedAlongLast,
      .expands = RunsAlongOther,
      .rtol = 0,
      .onnx = "TopK",
      .examples = {{{"f32[3, 17]"}, {{"k", int64_t{5}}}},
                   {{"bf16[7, S]"}, {{"k", int64_t{3}}, {"axis", int64_t{0}}, {"largest", false}}},
                   {{"f32[2, 397]"}, {{"k", int64_t{13}}}},
                   {{"i64[2, 331]"}, {{"k", int64_t{11}}, {"largest", false}, {"sorted", false}}},
                   {{"u8[331]"}, {{"k", int64_t{200}}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
