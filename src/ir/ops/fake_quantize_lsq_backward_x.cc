// FakeQuantizeLSQBackwardX: dy where FakeQuantizeLSQ clamped nothing, 0 elsewhere.

#include <cmath>

#include "ir/fake_quantise.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckLevels(context, 1, 2));
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  Attributes attributes = node.attributes;
  attributes.Set("ste", std::string("clipped"));
  return e.Finish({e.Add("FakeQuantizeBackward", {inputs.begin(), inputs.end()}, std::move(attributes))});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &scale = *context.operands[1], &dy = *context.operands[2];
  RefTensor& y = context.results[0];
  ForEachScaled(x, context.node.attributes, [&](int64_t at, int64_t s) {
    const bool kept = std::fabs(x.data[at] / UsableScale(scale.data[s])) <= LevelsOf(context.node.attributes);
    y.data[at] = kept ? dy.data[at] : 0;
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_fake_quantize_lsq_backward_x() {
  static const OpDef* const op = Make({
      .name = "FakeQuantizeLSQBackwardX",
      .doc = "dy where FakeQuantizeLSQ clamped nothing, 0 elsewhere",
      .kind = OpKind::kComposite,
      .operands = LevelOperands(/*dy=*/true),
      .attributes = LevelAttributes(),
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .examples = {{{"f32[3, 7]", "f32[]", "f32[3, 7]"}},
                   {{"f32[2, 5, 3]", "f32[5]", "f32[2, 5, 3]"}, {{"axis", int64_t{1}}, {"bits", int64_t{2}}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
