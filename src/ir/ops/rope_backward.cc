// RopeBackward: dy rotated back, the gradient of a Rope with these attributes in x: what is not rotated is passed on.

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {

const OpDef& Op_rope();

namespace {

const OpDef& Forward() { return Op_rope(); }

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) { return Forward().infer(context); }

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  std::vector<Value> operands(inputs.begin(), inputs.end());
  operands[2] = e.Add("Neg", {inputs[2]});
  return e.Finish({e.Add("Rope", std::move(operands), node.attributes)});
}

// What `of`, a function of Rope's, makes of the other direction.
Status Back(RefContext& context, Status (*of)(RefContext&)) {
  RefTensor sine = *context.operands[2];
  for (double& value : sine.data) value = -value;
  std::vector<const RefTensor*> operands(context.operands.begin(), context.operands.end());
  operands[2] = &sine;
  RefContext back{context.node, operands, context.binding, context.results};
  return of(back);
}

}  // namespace

const OpDef& Op_rope_backward() {
  static const OpDef* const op = [] {
    const OpDef& rope = Op_rope();
    std::vector<OperandDef> operands = rope.operands;
    operands[0].name = "dy";
    return Make({
        .name = "RopeBackward",
        .doc = "the gradient of a Rope with these attributes in x",
        .kind = OpKind::kComposite,
        .operands = std::move(operands),
        .attributes = rope.attributes,
        .infer = Infer,
        .reference = [](RefContext& c) { return Back(c, Forward().reference); },
        .expand = Expand,
        .rtol = 2e-6,
        .magnitude = [](RefContext& c) { return Back(c, Forward().magnitude); },
        .examples = {{{"f32[5, 16]", "f32[5, 4]", "f32[5, 4]"}, {{"head_dim", int64_t{8}}, {"n_rot", int64_t{8}}}},
                     {{"f32[2, S, 12]", "f32[S, 2]", "f32[S, 2]"},
                      {{"head_dim", int64_t{6}}, {"n_rot", int64_t{4}}, {"style", std::string("gptj")}}}},
    });
  }();
  return *op;
}

}  // namespace quern::ir
