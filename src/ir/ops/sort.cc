// Sort: the elements along one axis in order, and where they stood. Stable either way; a NaN is the largest, so it
// comes last of ascending and first of descending ones.

#include "ir/sort.h"

#include "ir/shape.h"

namespace quern::ir {
namespace {

bool Descending(const Node& node) { return node.attributes.Bool("descending"); }

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(AxisOf(context).status());
  return std::vector<TensorType>{context.operands[0], {DType::kI64, context.operands[0].dims}};
}

constexpr SortDef kSort = {Descending};

}  // namespace

const OpDef& Op_sort() {
  static const OpDef* const op = Make({
      .name = "Sort",
      .doc = "the elements along one axis in order, and where they stood",
      .kind = OpKind::kRoot,
      .family = "sort",
      .operands = {{.name = "x", .shape = "rank 1 or more"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}},
                     {.name = "descending", .kind = AttrKind::kBool, .default_value = false}},
      .infer = Infer,
      .sort = &kSort,
      .reference = [](RefContext& context) { return ReferenceOrder(context, Descending(context.node)); },
      .expand = OrderedAlongLast,
      .expands = RunsAlongOther,
      .rtol = 0,
      .examples = {{{"f32[3, 17]"}},
                   {{"i16[7, 5]"}, {{"axis", int64_t{0}}, {"descending", true}}},
                   {{"f16[2, S]"}, {{"descending", true}}},
                   {{"f32[2, 397]"}},
                   {{"u64[331]"}, {{"descending", true}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
