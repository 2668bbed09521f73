// FusedConvBiasAct: act(Conv(x, w, b)).

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"
#include "ir/window.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const std::string& act = context.attributes.String("act");
  if (!act.empty() && !IsActivation(act)) return context.AttributeError("act", "name of an elementwise op, or empty");
  return FindOp("Conv")->infer(context);
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  Attributes convolution;
  for (const auto& [name, value] : node.attributes.values()) {
    if (name != "act") convolution.Set(name, value);
  }
  const std::string& act = node.attributes.String("act");
  // Halves are rounded once, behind the activation.
  std::vector<Value> operands(inputs.begin(), inputs.end());
  for (Value& operand : operands) operand = act.empty() ? operand : e.Wide(operand);
  const Value y = e.Add("Conv", std::move(operands), std::move(convolution));
  return e.Finish({e.Stored(act.empty() ? y : e.Add(act, {y}), node.results[0].dtype)});
}

Status Reference(RefContext& context) {
  const std::string& act = context.node.attributes.String("act");
  const DType stored = context.results[0].dtype;
  if (!act.empty() && stored != DType::kF64) context.results[0].dtype = DType::kF32;
  QUERN_RETURN_IF_ERROR(FindOp("Conv")->reference(context));
  if (act.empty()) return absl::OkStatus();
  Node node = context.node;
  node.op = FindOp(act);
  node.attributes = {};
  QUERN_RETURN_IF_ERROR(CheckAttributes(node.op->name, node.op->attributes, node.attributes, /*fill_defaults=*/true));
  const RefTensor sum = context.results[0];
  context.results[0].dtype = stored;
  const RefTensor* const operands[] = {&sum};
  RefContext last{node, operands, context.binding, context.results};
  return node.op->reference(last);
}

}  // namespace

const OpDef& Op_fused_conv_bias_act() {
  static const OpDef* const op = [] {
    const OpDef& conv = *FindConvolution();
    std::vector<AttrDef> attributes = conv.attributes;
    std::vector<OperandDef> operands = conv.operands;
    for (OperandDef& operand : operands) operand.kind = OperandKind::kFloat, operand.own_dtype = false;
    attributes.push_back({.name = "act",
                          .kind = AttrKind::kString,
                          .default_value = std::string(),
                          .doc = "name of an elementwise op, or empty"});
    return Make({
        .name = "FusedConvBiasAct",
        .doc = "act(Conv(x, w, b))",
        .kind = OpKind::kComposite,
        .operands = std::move(operands),
        .attributes = std::move(attributes),
        .infer = Infer,
        .channels_last = conv.channels_last,
        .reference = Reference,
        .expand = Expand,
        .rtol = 4e-6,
        .magnitude = conv.magnitude,
        .examples =
            {{{"f32[2, 3, 9]", "f32[5, 3, 2]", "f32[5]"}, {{"act", std::string("Relu")}}},
             {{"f32[1, 4, 7, 5]", "f32[6, 2, 3, 3]", "f32[6]"},
              {{"act", std::string("Tanh")}, {"groups", int64_t{2}}, {"pads", std::vector<int64_t>{1, 1, 1, 0}}}},
             {{"f32[S, 2, 11]", "f32[3, 2, 3]"}}},
    });
  }();
  return *op;
}

}  // namespace quern::ir
