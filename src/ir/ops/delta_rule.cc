// DeltaRule: GatedDeltaNet token by token, in f32 and with a state: what kernels are made of. A state that is donated
// is written over in place.

#include "ir/delta_rule.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  for (int i = 0; i < static_cast<int>(context.operands.size()); ++i) {
    if (context.operands[i].dtype != DType::kF32) return context.UnsupportedError(i, "f32");
  }
  return InferDeltaRule(context, context.operands[kDeltaDecay].rank() == 4);
}

}  // namespace

const OpDef& Op_delta_rule() {
  static const OpDef* const op = Make({
      .name = "DeltaRule",
      .doc = "GatedDeltaNet token by token, in f32: o and the state",
      .kind = OpKind::kRoot,
      .family = "delta_rule",
      .operands = {{.name = "q", .kind = OperandKind::kFloat, .shape = "[B, S, G, n]"},
                   {.name = "k", .kind = OperandKind::kFloat, .shape = "[B, S, G, n]"},
                   {.name = "v", .kind = OperandKind::kFloat, .shape = "[B, S, H, m], H a multiple of G"},
                   {.name = "g", .kind = OperandKind::kFloat, .shape = "[B, S, H] or [B, S, H, n]"},
                   {.name = "beta", .kind = OperandKind::kFloat, .shape = "[B, S, H]"},
                   {.name = "state", .kind = OperandKind::kFloat, .shape = "[B, H, n, m]"}},
      .attributes =
          {{.name = "scale", .kind = AttrKind::kFloat, .default_value = 0.0, .doc = "of the result; 0: 1 / sqrt(n)"}},
      .infer = Infer,
      .takes_over = Takeover{.result = 1, .operand = kDeltaState},
      .reference = [](RefContext& c) { return ReferenceDeltaRule(c, c.node.attributes.Float("scale")); },
      .rtol = 2e-5,
      .magnitude = [](RefContext& c) { return MagnitudeOfDeltaRule(c, c.node.attributes.Float("scale")); },
      .examples = {{{"f32[2, 3, 1, 5]", "f32[2, 3, 1, 5]", "f32[2, 3, 2, 7]", "f32[2, 3, 2]", "f32[2, 3, 2]",
                     "f32[2, 2, 5, 7]"}},
                   {{"f32[S, 1, 2, 11]", "f32[S, 1, 2, 11]", "f32[S, 1, 2, 35]", "f32[S, 1, 2, 11]", "f32[S, 1, 2]",
                     "f32[S, 2, 11, 35]"},
                    {{"scale", 0.5}}}},
  });
  return *op;
}

}  // namespace quern::ir
