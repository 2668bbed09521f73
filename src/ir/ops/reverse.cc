// Reverse: the elements in the opposite order along each of `axes`.

#include <algorithm>

#include "ir/pairs.h"
#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  std::vector<int64_t> seen;
  for (const int64_t given : context.attributes.Ints("axes")) {
    QUERN_ASSIGN(const int axis, AxisOf(context, "axes", given));
    if (std::find(seen.begin(), seen.end(), axis) != seen.end())
      return context.AttributeError("axes", "each axis once");
    seen.push_back(axis);
  }
  return std::vector<TensorType>{context.operands[0]};
}

kir::ExprRef Map(MapContext& context) {
  kir::Index at = context.index();
  for (const int64_t given : context.node().attributes.Ints("axes")) {
    const int64_t axis = FromStart(given, at.size());
    at[axis] = kir::build::FromExtent(context.result_type().dims[axis]) - 1.0 - at[axis];
  }
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  MoveElements(*context.operands[0], y, [&](std::vector<int64_t>& index) {
    for (const int64_t given : context.node.attributes.Ints("axes")) {
      const int64_t axis = FromStart(given, index.size());
      index[axis] = y.dims[axis] - 1 - index[axis];
    }
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_reverse() {
  static const OpDef* const op = Make({
      .name = "Reverse",
      .doc = "the elements in the opposite order along each of `axes`",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "axes", .kind = AttrKind::kInts}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .pairs = SameOfPairs,
      .examples = {{{"f32[2, 3]"}, {{"axes", std::vector<int64_t>{0}}}}},
  });
  return *op;
}

}  // namespace quern::ir
