// Reshape: the same elements in row-major order with other extents. One extent may be given as -1.

#include "ir/identity.h"
#include "ir/pairs.h"
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
      if (open >= 0) return context.AttributeError("shape", "at most one -1");
      open = static_cast<int>(d);
    } else {
      known = known * shape[d];
    }
  }
  const Extent elements = x.elements();
  if (open >= 0) {
    const std::optional<Extent> rest = elements.DividedBy(known);
    if (!rest) return context.AttributeError("shape", absl::StrCat("a divisor of the elements of ", x.ToString()));
    shape[open] = *rest;
  } else if (!context.Equal(known, elements)) {
    return context.AttributeError("shape", absl::StrFormat("the %s elements of %s", elements.ToString(), x.ToString()));
  }
  return std::vector<TensorType>{{x.dtype, std::move(shape)}};
}

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  std::vector<Extent> shape = context.node.results[0].dims;
  shape.emplace_back(2);
  return context.e.Finish({context.e.Add("Reshape", {context.x[0]}, {{"shape", std::move(shape)}})});
}

Replacement Identity(const IdentityContext& context) {
  if (context.type(0) == context.result()) return context.inputs[0];
  return context.behind(0).op == context.node.op ? Reshaped(context, context.inputs[0]) : std::nullopt;
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
      .strides = [](const Node& node, const Strides& x) { return x.Reshaped(node.results[0].dims); },
      .identity = Identity,
      .reference =
          [](RefContext& c) {
            c.results[0].data = c.operands[0]->data;
            c.results[0].integers = c.operands[0]->integers;
            return absl::OkStatus();
          },
      .pairs = Pairs,
      .onnx = "Reshape",
      .examples = {{{"f32[2, 3]"}, {{"shape", std::vector<Extent>{3, 2}}}}},
  });
  return *op;
}

Replacement Reshaped(const IdentityContext& context, Value x) {
  while (context.graph.node(x.node).op == &Op_reshape()) x = context.graph.node(x.node).inputs[0];
  if (context.graph.type(x) == context.result()) return x;
  return context.make("Reshape", {x}, {{"shape", context.result().dims}});
}

StatusOr<Value> MakeReshaped(const MakeNode& make, Value x, std::vector<Extent> dims) {
  return make("Reshape", {x}, {{"shape", std::move(dims)}});
}

}  // namespace quern::ir
