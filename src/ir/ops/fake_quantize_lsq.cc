// FakeQuantizeLSQ: x as the nearest of a few levels, multiples of a scale that is learnt.

#include "ir/fake_quantise.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckLevels(context, 1, -1));
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType type = graph.type(inputs[0]);
  const Value scale = UsableScale(e, inputs[1], type, node.attributes);
  return e.Finish({e.Stored(Levelled(e, e.Wide(inputs[0]), scale, node.attributes), type.dtype)});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &scale = *context.operands[1];
  RefTensor& y = context.results[0];
  ForEachScaled(x, context.node.attributes, [&](int64_t at, int64_t s) {
    y.data[at] =
        RoundTo(y.dtype, Levelled(x.dtype, x.data[at], UsableScale(scale.data[s]), LevelsOf(context.node.attributes)));
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_fake_quantize_lsq() {
  static const OpDef* const op = Make({
      .name = "FakeQuantizeLSQ",
      .doc = "x as the nearest of a few levels, multiples of a scale that is learnt",
      .kind = OpKind::kComposite,
      .operands = LevelOperands(/*dy=*/false),
      .attributes = LevelAttributes(),
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .examples = {{{"f32[3, 7]", "f32[]"}},
                   {{"f32[2, 5, 3]", "f32[5]"}, {{"axis", int64_t{1}}, {"bits", int64_t{4}}}},
                   {{"bf16[S, 11]", "f32[S]"}, {{"axis", int64_t{0}}, {"bits", int64_t{2}}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
