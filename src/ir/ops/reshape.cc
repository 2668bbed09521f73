// Reshape: the same elements in row-major order with other extents. One extent may be given as -1.

#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  std::vector<Extent> shape = context.attributes.Extents("shape");
  Extent known(1);
  int open = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == Extent(-1)) {
      if (open >= 0) return absl::InvalidArgumentError("Reshape: only one extent may be -1");
      open = static_cast<int>(d);
    } else {
      known = known * shape[d];
    }
  }
  const Extent elements = x.elements();
  if (open >= 0) {
    const std::optional<Extent> rest = elements.DividedBy(known);
    if (!rest) {
      return absl::InvalidArgumentError(
          absl::StrFormat("Reshape: %s elements do not divide by %s", elements.ToString(), known.ToString()));
    }
    shape[open] = *rest;
  } else if (known != elements) {
    if (known.is_constant() && elements.is_constant()) {
      return absl::InvalidArgumentError(absl::StrFormat("Reshape: %s has %s elements, %s expected", x.ToString(),
                                                        elements.ToString(), known.ToString()));
    }
    context.constraints->push_back({known, elements});
  }
  return std::vector<TensorType>{{x.dtype, std::move(shape)}};
}

}  // namespace

const OpDef& Op_reshape() {
  static const OpDef* const op = Make({
      .name = "Reshape",
      .doc = "the same elements in row-major order with other extents",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "shape", .kind = AttrKind::kExtents, .doc = "one extent may be -1"}},
      .infer = Infer,
      .map =
          [](MapContext& c) {
            return c.Operand(0, ReshapeIndex(c.result_type().dims, c.operand_type(0).dims, c.index()));
          },
      .view = [](const Node&, const TensorType&) { return std::optional<Extent>(0); },
      .reference =
          [](RefContext& c) {
            c.results[0].data = c.operands[0]->data;
            return absl::OkStatus();
          },
      .onnx = "Reshape",
  });
  return *op;
}

}  // namespace quern::ir
