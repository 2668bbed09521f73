// Lstm: ONNX's LSTM of one layer. Gates stand in the order i, o, f, c; p are the weights of peepholes of i, o, f.
//
//   i, f = F(x w + h r + p c)   c~ = G(x w + h r)   C = f c + i c~
//   o = F(x w + h r + p C)   H = o H(C)
//
// where F (`gate`) is a sigmoid, and G (`candidate`) and H (`output`) are tanh if nothing else is said.

#include "ir/recurrent.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

constexpr Recurrent kNet = {.gates = 4, .states = 2};
enum : int { kI, kO, kF, kC };
constexpr int kPeepholes = kNet.extra();

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_ASSIGN(std::vector<TensorType> results, InferRecurrent(context, kNet));
  if (context.operands.size() > kPeepholes) {
    const std::vector<Extent> dims = {results[1].dims[0], Extent(3) * results[1].dims[2]};
    if (!context.Equal(context.operands[kPeepholes].dims, dims)) return context.ShapeError(kPeepholes, ToString(dims));
  }
  return results;
}

std::vector<Value> Step(Expansion& body, const CellInputs& in, bool peepholes, const Attributes& attributes) {
  const Value all = body.Add("Add", {in.gates, FromHidden(body, in.states[0], in.r, in.hidden, 0, kNet.gates)});
  const auto gate = [&](int64_t which, Value c) {
    Value x = Gate(body, all, in.hidden, which);
    if (peepholes && which != kC) {
      const Value weights = body.Add("Narrow", {in.extra},
                                     {{"axis", int64_t{0}},
                                      {"start", std::vector<Extent>{Extent(which) * in.hidden}},
                                      {"length", std::vector<Extent>{in.hidden}}});
      x = body.Add("Add", {x, body.Add("Mul", {weights, c})});
    }
    return Activated(body, attributes.String(which == kC ? "candidate" : "gate"), Clipped(body, x, in.clip));
  };
  const Value before = in.states[1];
  const Value kept = body.Add("Mul", {gate(kF, before), before});
  const Value c = body.Add("Add", {kept, body.Add("Mul", {gate(kI, before), gate(kC, before)})});
  return {body.Add("Mul", {gate(kO, c), Activated(body, attributes.String("output"), c)}), c};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  const bool peepholes = inputs.size() > kPeepholes;
  const Attributes attributes = node.attributes;
  return ExpandRecurrent(graph, node, inputs, origin, kNet, 0,
                         [&](Expansion& body, const CellInputs& in) { return Step(body, in, peepholes, attributes); });
}

Status Run(RefContext& context, bool bound) {
  const RefTensor* const p = context.operands.size() > kPeepholes ? context.operands[kPeepholes] : nullptr;
  const Attributes& attributes = context.node.attributes;
  const std::string f = attributes.String("gate"), g = attributes.String("candidate"), h = attributes.String("output");
  return ReferenceRecurrent(context, kNet, bound, [&](const RefCell& cell, int64_t j) -> std::vector<double> {
    const int64_t hidden = context.results[1].dims[2];
    const auto gate = [&](int which, double c) {
      const double peephole = p == nullptr || which == kC ? 0 : p->data[(cell.direction * 3 + which) * hidden + j];
      return cell.Clip(cell.input(which, j) + cell.bias(which, j) +
                       cell.hidden(which, j, [&](int64_t i) { return cell.state(0, i); }) + peephole * c);
    };
    const double before = cell.state(1, j);
    const double c =
        Activated(f, gate(kF, before)) * before + Activated(f, gate(kI, before)) * Activated(g, gate(kC, before));
    return {Activated(f, gate(kO, c)) * Activated(h, c), c};
  });
}

std::vector<OperandDef> Operands() {
  std::vector<OperandDef> operands = RecurrentOperands(kNet.gates, {"initial_h", "initial_c"});
  operands.push_back({.name = "p", .kind = OperandKind::kFloat, .shape = "[D, 3H]", .optional = true});
  return operands;
}

}  // namespace

const OpDef& Op_lstm() {
  static const OpDef* const op = Make({
      .name = "Lstm",
      .doc = "a layer of long short-term memory, gates i, o, f, c: y, the last h and c",
      .kind = OpKind::kComposite,
      .operands = Operands(),
      .attributes = RecurrentAttributes({ActivationAttribute("gate", "Sigmoid", "of i, o and f"),
                                         ActivationAttribute("candidate", "Tanh", "of c"),
                                         ActivationAttribute("output", "Tanh", "of what h is made of")}),
      .infer = Infer,
      .reference = [](RefContext& c) { return Run(c, false); },
      .expand = Expand,
      .rtol = 1e-5,
      .magnitude = [](RefContext& c) { return Run(c, true); },
      .onnx = "LSTM",
      .examples = {{{"f32[3, 2, 5]", "f32[1, 12, 5]", "f32[1, 12, 3]"}},
                   {{"f32[S, 2, 5]", "f32[2, 28, 5]", "f32[2, 28, 7]", "f32[2, 56]", "f32[2, 2, 7]", "f32[2, 2, 7]",
                     "i32[2]", "f32[2, 21]"},
                    {{"direction", std::string("bidirectional")}, {"clip", 0.75}}},
                   {{"f32[S, 2, 5]", "f32[1, 12, 5]", "f32[1, 12, 3]"},
                    {{"gate", std::string("HardSigmoid")},
                     {"candidate", std::string("Softplus")},
                     {"output", std::string("Relu")}}}},
  });
  return *op;
}

}  // namespace quern::ir
