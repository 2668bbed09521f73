// LSTM, GRU and RNN: ours have the same gates and operands, with lens behind the states.

#include <algorithm>

#include "ir/recurrent.h"
#include "onnx/table.h"

namespace quern::onnx {
namespace {

enum : int { kX, kW, kR, kB, kLens, kH, kC, kP };

// The activations of a direction, as attributes by these names; of both they must be the same, and HardSigmoid ours.
void TakeActivations(Call& c, const std::vector<const char*>& names, ir::Attributes& attributes) {
  const std::vector<std::string> given = c.StrList("activations");
  for (size_t i = 0; i < given.size(); ++i) {
    const size_t of = i % names.size();
    if (given[i] != given[of]) return c.Fail("its directions have other activations");
    if (!ir::IsActivation(given[i])) return c.Fail("its activation %s has no op", given[i]);
    attributes.Set(names[of], given[i]);
  }
  const auto usual = [&](const char* list, double number) {
    return std::ranges::all_of(c.FloatList(list), [&](double value) {
      return value == 0 || static_cast<float>(value) == static_cast<float>(number);
    });
  };
  if (!usual("activation_alpha", ir::kHardSigmoidAlpha) || !usual("activation_beta", ir::kHardSigmoidBeta))
    c.Fail("its activations have numbers");
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
  if (c.Int("input_forget", 0) != 0) return c.Fail("its gates are joined (input_forget)");
  ir::Attributes attributes;
  TakeActivations(c, {"gate", "candidate", "output"}, attributes);
  Net(c, 2, 4, attributes, true);
}
void Gru(Call& c) {
  ir::Attributes attributes = {{"linear_before_reset", c.Int("linear_before_reset", 0) != 0}};
  TakeActivations(c, {"gate", "candidate"}, attributes);
  Net(c, 1, 3, attributes, false);
}
void Rnn(Call& c) {
  ir::Attributes attributes;
  TakeActivations(c, {"activation"}, attributes);
  Net(c, 1, 1, attributes, false);
}

constexpr Importer kRows[] = {
    {"GRU", Gru, "Gru", 3},
    {"LSTM", Lstm, "Lstm", 3},
    {"RNN", Rnn, "Rnn", 3},
};

}  // namespace

std::span<const Importer> RecurrentImporters() { return kRows; }

}  // namespace quern::onnx
