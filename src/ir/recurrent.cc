#include "ir/recurrent.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ir/shape.h"

namespace quern::ir {
namespace {

using Dims = std::vector<Extent>;

int64_t Directions(const Attributes& attributes) { return attributes.String("direction") == "bidirectional" ? 2 : 1; }

bool Reversed(const Attributes& attributes, int64_t direction) {
  return direction == 1 || attributes.String("direction") == "reverse";
}

struct Activation {
  const char* name;
  double (*of)(double x);
};
constexpr Activation kActivations[] = {
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"Relu", [](double x) { return std::max(x, 0.0); }},
    {"HardSigmoid", [](double x) { return std::clamp(kHardSigmoidAlpha * x + kHardSigmoidBeta, 0.0, 1.0); }},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }},
    {"Softplus", [](double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }},
};

// Null where there is none of that name.
const Activation* FindActivation(const std::string& name) {
  const Activation* const found = std::ranges::find(kActivations, name, &Activation::name);
  return found == std::end(kActivations) ? nullptr : found;
}

Value Part(Expansion& e, Value x, int64_t axis, const Extent& start, const Extent& length) {
  return e.Add("Narrow", {x}, {{"axis", axis}, {"start", Dims{start}}, {"length", Dims{length}}});
}

}  // namespace

std::vector<OperandDef> RecurrentOperands(int gates, const std::vector<const char*>& states) {
  const bool four = gates == 4, three = gates == 3;
  std::vector<OperandDef> operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[S, B, I]"},
                                      {.name = "w",
                                       .kind = OperandKind::kFloat,
                                       .shape = four    ? "[D, 4H, I]"
                                                : three ? "[D, 3H, I]"
                                                        : "[D, H, I]"},
                                      {.name = "r",
                                       .kind = OperandKind::kFloat,
                                       .shape = four    ? "[D, 4H, H]"
                                                : three ? "[D, 3H, H]"
                                                        : "[D, H, H]"},
                                      {.name = "b",
                                       .kind = OperandKind::kFloat,
                                       .shape = four    ? "[D, 8H]"
                                                : three ? "[D, 6H]"
                                                        : "[D, 2H]",
                                       .optional = true}};
  for (const char* state : states)
    operands.push_back({.name = state, .kind = OperandKind::kFloat, .shape = "[D, B, H]", .optional = true});
  operands.push_back(
      {.name = "lens", .kind = OperandKind::kIndex, .shape = "[B]", .optional = true, .own_dtype = true});
  return operands;
}

std::vector<AttrDef> RecurrentAttributes(std::vector<AttrDef> own) {
  std::vector<AttrDef> attributes = {{.name = "direction",
                                      .kind = AttrKind::kString,
                                      .default_value = std::string("forward"),
                                      .doc = "D is 2 of bidirectional, else 1",
                                      .choices = {"forward", "reverse", "bidirectional"}},
                                     {.name = "clip",
                                      .kind = AttrKind::kFloat,
                                      .default_value = 0.0,
                                      .doc = "what activations are given lies between -clip and clip; 0: anywhere"}};
  std::ranges::move(own, std::back_inserter(attributes));
  return attributes;
}

AttrDef ActivationAttribute(const char* name, const char* usual, const char* doc) {
  AttrDef attribute = {
      .name = name, .kind = AttrKind::kString, .default_value = std::string(usual), .doc = doc, .choices = {}};
  for (const Activation& activation : kActivations) attribute.choices.emplace_back(activation.name);
  return attribute;
}

bool IsActivation(const std::string& name) { return FindActivation(name) != nullptr; }

StatusOr<std::vector<TensorType>> InferRecurrent(const InferContext& context, const Recurrent& net) {
  const std::span<const TensorType> operands = context.operands;
  const TensorType &x = operands[kNetX], &w = operands[kNetW], &r = operands[kNetR];
  const Extent directions(Directions(context.attributes)), gates(net.gates);
  if (context.attributes.Float("clip") < 0) return context.AttributeError("clip", "0 or more");
  if (x.rank() != 3) return context.ShapeError(kNetX, "[S, B, I]");
  const Extent &length = x.dims[0], &batch = x.dims[1], &inputs = x.dims[2];
  if (r.rank() != 3 || !r.dims[2].is_constant() || r.dims[2].constant() < 1)
    return context.ShapeError(kNetR, "[D, gates H, H], H a constant of 1 or more");
  const Extent hidden = r.dims[2];
  const Dims of_r = {directions, gates * hidden, hidden}, of_w = {directions, gates * hidden, inputs},
             bias = {directions, Extent(2) * gates * hidden}, state = {directions, batch, hidden};
  if (!context.Equal(r.dims, of_r)) return context.ShapeError(kNetR, ToString(of_r));
  if (!context.Equal(w.dims, of_w)) return context.ShapeError(kNetW, ToString(of_w));
  const int count = static_cast<int>(operands.size());
  if (count > kNetB && !context.Equal(operands[kNetB].dims, bias)) return context.ShapeError(kNetB, ToString(bias));
  if (count > net.lens() && !context.Equal(operands[net.lens()].dims, Dims{batch}))
    return context.ShapeError(net.lens(), ToString({batch}));
  for (int s = 0; s < net.states && count > kNetStates + s; ++s) {
    if (!context.Equal(operands[kNetStates + s].dims, state))
      return context.ShapeError(kNetStates + s, ToString(state));
  }
  std::vector<TensorType> results = {{x.dtype, {length, directions, batch, hidden}}};
  for (int s = 0; s < net.states; ++s) results.push_back({x.dtype, state});
  return results;
}

Value Gate(Expansion& body, Value gates, const Extent& hidden, int64_t gate) {
  return Part(body, gates, -1, Extent(gate) * hidden, hidden);
}

Value Clipped(Expansion& body, Value x, double clip) {
  if (clip == 0 || !body.ok()) return x;
  const DType dtype = body.type(x).dtype;
  return body.Add("Clamp", {x, body.Scalar(-clip, dtype), body.Scalar(clip, dtype)});
}

Value Activated(Expansion& body, const std::string& name, Value x) {
  if (name == "HardSigmoid") return body.Add(name, {x}, {{"alpha", kHardSigmoidAlpha}, {"beta", kHardSigmoidBeta}});
  return body.Add(name, {x});
}

double Activated(const std::string& name, double x) { return FindActivation(name)->of(x); }

Value FromHidden(Expansion& body, Value h, Value r, const Extent& hidden, int64_t gate, int64_t count) {
  return body.Add("MatMul", {h, Part(body, r, 0, Extent(gate) * hidden, Extent(count) * hidden)},
                  {{"transpose_b", true}});
}

StatusOr<std::vector<Value>> ExpandRecurrent(Graph& graph, const Node& node, std::span<const Value> inputs, int origin,
                                             const Recurrent& net, int apart, const Cell& cell) {
  Expansion e(graph, origin);
  const DType dtype = node.results[0].dtype;
  const Dims& y = node.results[0].dims;
  const Extent length = y[0], directions = y[1], batch = y[2], hidden = y[3];
  const Extent rows = Extent(net.gates) * hidden, shared = Extent(net.gates - apart) * hidden;
  const Value x = e.Wide(inputs[kNetX]);
  if (!e.ok()) return e.Finish({});
  const DType wide = e.type(x).dtype;
  const Value zero = e.Scalar(0, wide);
  const auto has = [&](size_t operand) { return operand < inputs.size(); };
  // What operand `operand` has of a direction, without that dimension.
  const auto of = [&](int operand, int64_t direction) {
    const Value all = e.Wide(inputs[operand]);
    if (!e.ok()) return Value{};
    Dims dims = e.type(all).dims;
    dims.erase(dims.begin());
    return e.Sized(Part(e, all, 0, Extent(direction), Extent(1)), std::move(dims));
  };
  Value live;  // [S, B, 1]: whether the sequence has that token
  if (has(net.lens())) {
    const DType index = e.type(inputs[net.lens()]).dtype;
    const Value t = e.Iota({length, Extent(1)}, 0, index);
    live = e.Sized(e.Add("Lt", {t, e.Sized(inputs[net.lens()], {Extent(1), batch})}), {length, batch, Extent(1)});
  }
  std::vector<std::vector<Value>> made(net.states + 1);  // y and the states, a direction after the other
  for (int64_t d = 0; d < directions.constant(); ++d) {
    Value gates = e.Add("MatMul", {x, of(kNetW, d)}, {{"transpose_b", true}});
    std::vector<Value> captures = {of(kNetR, d)};
    if (has(kNetB)) {
      const Value bias = of(kNetB, d), of_r = Part(e, bias, 0, rows, rows);
      Value both = e.Add("Add", {Part(e, bias, 0, Extent(0), rows), of_r});
      if (apart > 0) {
        both = e.Add("Concat", {Part(e, both, 0, Extent(0), shared), Part(e, bias, 0, shared, rows - shared)},
                     {{"axis", int64_t{0}}});
        captures.push_back(of_r);
      }
      gates = e.Add("Add", {gates, both});
    }
    const bool own_bias = captures.size() > 1, extra = has(net.extra());
    if (extra) captures.push_back(of(net.extra(), d));
    std::vector<Value> states, xs = {gates};
    for (int s = 0; s < net.states; ++s) {
      states.push_back(has(kNetStates + s) ? of(kNetStates + s, d)
                                           : e.Add("Expand", {zero}, {{"shape", Dims{batch, hidden}}}));
    }
    if (has(net.lens())) xs.push_back(live);
    const auto step = [&](Expansion& body, std::span<const Value> in) {
      CellInputs at;
      at.gates = in[net.states];
      at.hidden = hidden;
      at.clip = node.attributes.Float("clip");
      at.states.assign(in.begin(), in.begin() + net.states);
      size_t next = net.states + xs.size();
      at.r = in[next++];
      if (own_bias) at.bias = in[next++];
      if (extra) at.extra = in[next++];
      std::vector<Value> results = cell(body, at);
      Value shown = results[0];
      if (has(net.lens())) {
        const Value is_live = in[net.states + 1];
        shown = body.Add("Where", {is_live, shown, body.Scalar(0, wide)});
        for (int s = 0; s < net.states; ++s) results[s] = body.Add("Where", {is_live, results[s], at.states[s]});
      }
      results.push_back(shown);
      return results;
    };
    const std::vector<Value> results = e.Scan(length, states, xs, step, captures, Reversed(node.attributes, d));
    made[0].push_back(e.Sized(results[net.states], {length, Extent(1), batch, hidden}));
    for (int s = 0; s < net.states; ++s) made[s + 1].push_back(e.Sized(results[s], {Extent(1), batch, hidden}));
  }
  std::vector<Value> results;
  for (size_t r = 0; r < made.size(); ++r) {
    Value all = made[r][0];
    if (made[r].size() > 1) all = e.Add("Concat", made[r], {{"axis", int64_t{r == 0 ? 1 : 0}}});
    results.push_back(e.Stored(all, dtype));
  }
  return e.Finish(std::move(results));
}

double RefCell::Clip(double x) const { return clip == 0 || std::isnan(x) ? x : std::clamp(x, -clip, clip); }

Status ReferenceRecurrent(RefContext& context, const Recurrent& net, bool bound,
                          const std::function<std::vector<double>(const RefCell&, int64_t j)>& make) {
  const auto operand = [&](size_t i) { return i < context.operands.size() ? context.operands[i] : nullptr; };
  const RefTensor &x = *operand(kNetX), &w = *operand(kNetW), &r = *operand(kNetR);
  const RefTensor *const b = operand(kNetB), *const lens = operand(net.lens());
  const int64_t length = x.dims[0], batch = x.dims[1], inputs = x.dims[2], hidden = r.dims[2], gates = net.gates;
  const int64_t directions = Directions(context.node.attributes);
  double largest = 0;  // sum of the terms that a gate is given
  for (int64_t d = 0; d < directions; ++d) {
    for (int64_t n = 0; n < batch; ++n) {
      std::vector<std::vector<double>> state(net.states, std::vector<double>(hidden));
      for (int s = 0; s < net.states; ++s) {
        const RefTensor* const initial = operand(kNetStates + s);
        for (int64_t j = 0; initial != nullptr && j < hidden; ++j)
          state[s][j] = initial->data[(d * batch + n) * hidden + j];
      }
      const int64_t tokens = lens == nullptr ? length : std::clamp<int64_t>(lens->integers[n], 0, length);
      for (int64_t step = 0; step < tokens; ++step) {
        const int64_t t = Reversed(context.node.attributes, d) ? tokens - 1 - step : step;
        std::vector<std::vector<double>> next = state;
        RefCell cell;
        cell.direction = d;
        cell.clip = context.node.attributes.Float("clip");
        const auto row = [&](int gate, int64_t j) { return (d * gates + gate) * hidden + j; };
        const auto bias = [&](int gate, int64_t j, int64_t part) {
          return b == nullptr ? 0 : b->data[((d * 2 + part) * gates + gate) * hidden + j];
        };
        cell.input = [&](int gate, int64_t j) {
          double sum = bias(gate, j, 0), terms = std::fabs(sum);
          for (int64_t i = 0; i < inputs; ++i) {
            const double term = w.data[row(gate, j) * inputs + i] * x.data[(t * batch + n) * inputs + i];
            sum += term, terms += std::fabs(term);
          }
          largest = std::max(largest, terms);
          return sum;
        };
        cell.bias = [&](int gate, int64_t j) { return bias(gate, j, 1); };
        cell.hidden = [&](int gate, int64_t j, const std::function<double(int64_t)>& h) {
          double sum = 0, terms = 0;
          for (int64_t i = 0; i < hidden; ++i) {
            const double term = r.data[row(gate, j) * hidden + i] * h(i);
            sum += term, terms += std::fabs(term);
          }
          largest = std::max(largest, terms);
          return sum;
        };
        cell.state = [&](int s, int64_t j) { return state[s][j]; };
        for (int64_t j = 0; j < hidden; ++j) {
          const std::vector<double> made = make(cell, j);
          for (int s = 0; s < net.states; ++s) next[s][j] = made[s];
        }
        state = std::move(next);
        for (int64_t j = 0; j < hidden; ++j) {
          RefTensor& y = context.results[0];
          y.data[((t * directions + d) * batch + n) * hidden + j] = RoundTo(y.dtype, state[0][j]);
        }
      }
      for (int s = 0; s < net.states; ++s) {
        RefTensor& last = context.results[s + 1];
        for (int64_t j = 0; j < hidden; ++j) last.data[(d * batch + n) * hidden + j] = RoundTo(last.dtype, state[s][j]);
      }
    }
  }
  if (!bound) return absl::OkStatus();
  for (RefTensor& result : context.results) {
    for (double& value : result.data) value = std::fabs(value) + 1 + largest;
  }
  return absl::OkStatus();
}

}  // namespace quern::ir
