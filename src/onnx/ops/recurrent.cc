// LSTM, GRU and RNN: ours have the same gates and operands, with lens behind the states.

#include "onnx/table.h"

namespace quern::onnx {
namespace {

enum : int { kX, kW, kR, kB, kLens, kH, kC, kP };

// Whether the activations are those given, for each direction.
bool HasActivations(Call& c, const std::vector<std::string>& usual) {
  const std::vector<std::string> given = c.StrList("activations");
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] != usual[i % usual.size()]) return false;
  }
  return true;
}

// `states`: how many are carried; `gates` of each.
void Net(Call& c, int states, int64_t gates, ir::Attributes attributes, bool peepholes) {
  Value x = c.x(kX);
  const Value w = c.x(kW), r = c.x(kR);
  const bool batch_first = c.Int("layout", 0) != 0;
  if (batch_first) x = c.Transpose(x, {1, 0, 2});
  const Extent directions = c.dim(w, 0), hidden = c.dim(r, 2), batch = c.dim(x, 1);
  const DType dtype = c.dtype(x);
  const std::string direction = c.Str("direction", "forward");
  attributes.Set("direction", direction);
  attributes.Set("clip", c.Float("clip", 0));
  const bool lens = c.Has(kLens), p = peepholes && c.Has(kP);
  const auto zeros = [&](const Extents& dims) { return c.Filled(0, dtype, dims); };
  Values operands = {x, w, r};
  operands.push_back(c.Has(kB) ? c.x(kB) : zeros({directions, hidden * Extent(2 * gates)}));
  const auto state = [&](int i) {
    if (!c.Has(i)) return zeros({directions, batch, hidden});
    return batch_first ? c.Transpose(c.x(i), {1, 0, 2}) : c.x(i);
  };
  operands.push_back(state(kH));
  if (states == 2) operands.push_back(state(kC));
  if (lens) operands.push_back(c.x(kLens));
  if (p && !lens) {
    operands.push_back(c.Expand(c.Cast(c.Size(c.dim(x, 0)), DType::kI64), {batch}));
  }
  if (p) operands.push_back(c.x(kP));
  const Values made = c.AddAll(c.row.op, operands, attributes);
  // [S, D, B, H] and [D, B, H]; with the batch first [B, S, D, H] and [B, D, H].
  c.Return(0, batch_first ? c.Transpose(made[0], {2, 0, 1, 3}) : made[0]);
  for (int s = 0; s < states; ++s) c.Return(1 + s, batch_first ? c.Transpose(made[1 + s], {1, 0, 2}) : made[1 + s]);
}

void Lstm(Call& c) {
  if (!HasActivations(c, {"Sigmoid", "Tanh", "Tanh"}))
    return c.Fail("its activations are others than Sigmoid and Tanh");
  if (c.Int("input_forget", 0) != 0) return c.Fail("its gates are joined (input_forget)");
  Net(c, 2, 4, {}, true);
}
void Gru(Call& c) {
  if (!HasActivations(c, {"Sigmoid", "Tanh"})) return c.Fail("its activations are others than Sigmoid and Tanh");
  Net(c, 1, 3, {{"linear_before_reset", c.Int("linear_before_reset", 0) != 0}}, false);
}
void Rnn(Call& c) {
  const bool relu = HasActivations(c, {"Relu"}) && !c.StrList("activations").empty();
  if (!relu && !HasActivations(c, {"Tanh"})) return c.Fail("its activations are neither Tanh nor Relu");
  Net(c, 1, 1, {{"activation", std::string(relu ? "Relu" : "Tanh")}}, false);
}

constexpr Importer kRows[] = {
    {"GRU", Gru, "Gru", 3},
    {"LSTM", Lstm, "Lstm", 3},
    {"RNN", Rnn, "Rnn", 3},
};

}  // namespace

std::span<const Importer> RecurrentImporters() { return kRows; }

}  // namespace quern::onnx
