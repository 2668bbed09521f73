// Rnn: ONNX's RNN of one layer: H = f(x w + h r), where f is Tanh if nothing else is said.

#include "ir/recurrent.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

constexpr Recurrent kNet = {.gates = 1, .states = 1};

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) { return InferRecurrent(context, kNet); }

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  const std::string activation = node.attributes.String("activation");
  return ExpandRecurrent(graph, node, inputs, origin, kNet, 0,
                         [=](Expansion& body, const CellInputs& in) -> std::vector<Value> {
                           const Value made = FromHidden(body, in.states[0], in.r, in.hidden, 0, 1);
                           const Value x = Clipped(body, body.Add("Add", {in.gates, made}), in.clip);
                           return {Activated(body, activation, x)};
                         });
}

Status Run(RefContext& context, bool bound) {
  const std::string activation = context.node.attributes.String("activation");
  return ReferenceRecurrent(context, kNet, bound, [&](const RefCell& cell, int64_t j) -> std::vector<double> {
    const double x =
        cell.Clip(cell.input(0, j) + cell.hidden(0, j, [&](int64_t i) { return cell.state(0, i); }) + cell.bias(0, j));
    return {Activated(activation, x)};
  });
}

}  // namespace

const OpDef& Op_rnn() {
  static const OpDef* const op = Make({
      .name = "Rnn",
      .doc = "a plain recurrent layer: y and the last h",
      .kind = OpKind::kComposite,
      .operands = RecurrentOperands(kNet.gates, {"initial_h"}),
      .attributes = RecurrentAttributes({ActivationAttribute("activation", "Tanh", "")}),
      .infer = Infer,
      .reference = [](RefContext& c) { return Run(c, false); },
      .expand = Expand,
      .rtol = 1e-5,
      .magnitude = [](RefContext& c) { return Run(c, true); },
      .onnx = "RNN",
      .examples = {{{"f32[3, 2, 5]", "f32[1, 3, 5]", "f32[1, 3, 3]"}},
                   {{"f32[S, 2, 5]", "f32[2, 7, 5]", "f32[2, 7, 7]", "f32[2, 14]", "f32[2, 2, 7]", "i32[2]"},
                    {{"direction", std::string("bidirectional")}, {"clip", 0.75}}}},
  });
  return *op;
}

}  // namespace quern::ir
