// Gru: ONNX's GRU of one layer. Gates stand in the order z, r, h.
//
//   z, r = f(x w + h r)   h~ = g(x w + (r h) r), or with linear_before_reset g(x w + r (h r + its bias))
//   H = (1 - z) h~ + z h
//
// where f (`gate`) is a sigmoid and g (`candidate`) a tanh if nothing else is said.

#include "ir/recurrent.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

constexpr Recurrent kNet = {.gates = 3, .states = 1};
enum : int { kZ, kR, kH };

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) { return InferRecurrent(context, kNet); }

std::vector<Value> Step(Expansion& body, const CellInputs& in, const Attributes& attributes) {
  const bool before_reset = attributes.Bool("linear_before_reset");
  const Value h = in.states[0], given = Gate(body, in.gates, in.hidden, kH);
  const Value made = FromHidden(body, h, in.r, in.hidden, kZ, before_reset ? 3 : 2);
  const auto gate = [&](int64_t which) {
    const Value x = body.Add("Add", {Gate(body, in.gates, in.hidden, which), Gate(body, made, in.hidden, which)});
    return Activated(body, attributes.String("gate"), Clipped(body, x, in.clip));
  };
  const Value z = gate(kZ), r = gate(kR);
  Value reset;
  if (before_reset) {
    Value linear = Gate(body, made, in.hidden, kH);
    if (in.bias.node >= 0) linear = body.Add("Add", {linear, Gate(body, in.bias, in.hidden, kH)});
    reset = body.Add("Mul", {r, linear});
  } else {
    reset = FromHidden(body, body.Add("Mul", {r, h}), in.r, in.hidden, kH, 1);
  }
  const Value next =
      Activated(body, attributes.String("candidate"), Clipped(body, body.Add("Add", {given, reset}), in.clip));
  // (1 - z) h~ + z h
  return {body.Add("Add", {next, body.Add("Mul", {z, body.Add("Sub", {h, next})})})};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  const Attributes attributes = node.attributes;
  return ExpandRecurrent(graph, node, inputs, origin, kNet, attributes.Bool("linear_before_reset") ? 1 : 0,
                         [&](Expansion& body, const CellInputs& in) { return Step(body, in, attributes); });
}

Status Run(RefContext& context, bool bound) {
  const Attributes& attributes = context.node.attributes;
  const bool before_reset = attributes.Bool("linear_before_reset");
  const std::string f = attributes.String("gate"), g = attributes.String("candidate");
  return ReferenceRecurrent(context, kNet, bound, [&](const RefCell& cell, int64_t j) -> std::vector<double> {
    const auto h = [&](int64_t i) { return cell.state(0, i); };
    const auto gate = [&](int which, int64_t i) {
      return Activated(f, cell.Clip(cell.input(which, i) + cell.hidden(which, i, h) + cell.bias(which, i)));
    };
    const double given = cell.input(kH, j), bias = cell.bias(kH, j), z = gate(kZ, j);
    const double next = before_reset ? given + gate(kR, j) * (cell.hidden(kH, j, h) + bias)
                                     : given + bias + cell.hidden(kH, j, [&](int64_t i) { return gate(kR, i) * h(i); });
    return {(1 - z) * Activated(g, cell.Clip(next)) + z * h(j)};
  });
}

}  // namespace

const OpDef& Op_gru() {
  static const OpDef* const op = Make({
      .name = "Gru",
      .doc = "a layer of gated recurrent units, gates z, r, h: y and the last h",
      .kind = OpKind::kComposite,
      .operands = RecurrentOperands(kNet.gates, {"initial_h"}),
      .attributes = RecurrentAttributes({{.name = "linear_before_reset",
                                          .kind = AttrKind::kBool,
                                          .default_value = false,
                                          .doc = "r scales h r and its bias, not h"},
                                         ActivationAttribute("gate", "Sigmoid", "of z and r"),
                                         ActivationAttribute("candidate", "Tanh", "of h")}),
      .infer = Infer,
      .reference = [](RefContext& c) { return Run(c, false); },
      .expand = Expand,
      .rtol = 1e-5,
      .magnitude = [](RefContext& c) { return Run(c, true); },
      .onnx = "GRU",
      .examples = {{{"f32[3, 2, 5]", "f32[1, 9, 5]", "f32[1, 9, 3]"}, {{"direction", std::string("reverse")}}},
                   {{"f32[S, 2, 5]", "f32[2, 21, 5]", "f32[2, 21, 7]", "f32[2, 42]", "f32[2, 2, 7]", "i32[2]"},
                    {{"direction", std::string("bidirectional")}, {"linear_before_reset", true}, {"clip", 0.75}}},
                   {{"f32[S, 2, 5]", "f32[1, 9, 5]", "f32[1, 9, 3]"},
                    {{"gate", std::string("HardSigmoid")}, {"candidate", std::string("Softsign")}}}},
  });
  return *op;
}

}  // namespace quern::ir
