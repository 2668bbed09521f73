// CumsumBackward: dy summed the other way, the gradient of a CumSum with these attributes.

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(AxisOf(context).status());
  return std::vector<TensorType>{context.operands[0]};
}

Attributes Turned(const Node& node) {
  Attributes attributes = node.attributes;
  attributes.Set("reverse", !attributes.Bool("reverse"));
  return attributes;
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  return e.Finish({e.Add("CumSum", {inputs[0]}, Turned(node))});
}

// Element i of the gradient is the sum of dy at all places whose sum x[i] is in; sizes: of the terms.
template <bool kSizes>
Status Sum(RefContext& context) {
  const RefTensor& dy = *context.operands[0];
  RefTensor& dx = context.results[0];
  const bool exclusive = context.node.attributes.Bool("exclusive"), reverse = context.node.attributes.Bool("reverse");
  ForEachLine(dy, context.node.attributes.Int("axis"), [&](const std::vector<int64_t>& line) {
    for (size_t i = 0; i < line.size(); ++i) {
      double sum = 0;
      for (size_t j = 0; j < line.size(); ++j) {
        const bool reaches = i == j ? !exclusive : (i < j) != reverse;
        if (reaches) sum += kSizes ? std::fabs(dy.data[line[j]]) : dy.data[line[j]];
      }
      dx.data[line[i]] = kSizes ? sum : RoundTo(dx.dtype, sum);
    }
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_cumsum_backward() {
  static const OpDef* const op = Make({
      .name = "CumsumBackward",
      .doc = "the gradient of a CumSum with these attributes",
      .kind = OpKind::kComposite,
      .operands = {{.name = "dy", .kind = OperandKind::kFloat, .shape = "rank 1 or more"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt},
                     {.name = "exclusive", .kind = AttrKind::kBool, .default_value = false},
                     {.name = "reverse", .kind = AttrKind::kBool, .default_value = false}},
      .infer = Infer,
      .reference = Sum<false>,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Sum<true>,
      .examples = {{{"f32[2, 7]"}, {{"axis", int64_t{1}}}},
                   {{"f32[S, 5]"}, {{"axis", int64_t{0}}, {"exclusive", true}, {"reverse", true}}}},
  });
  return *op;
}

}  // namespace quern::ir
