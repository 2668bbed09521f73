// Steps of optimisers (ai.onnx.preview.training): for any number of tensors, all their values, then all gradients, then
// all states.

#include <functional>

#include "onnx/table.h"

namespace quern::onnx {
namespace {

constexpr const char* kDomain = "ai.onnx.preview.training";

Value Scaled(Call& c, Value x, double by) { return c.Add("Mul", {x, c.Like(by, x)}); }
Value Plus(Call& c, Value a, Value b) { return c.Add("Add", {a, b}); }
Value Times(Call& c, Value a, Value b) { return c.Add("Mul", {a, b}); }

// Calls `step` with each tensor, its gradient and its `states`; it gives the new tensor and states.
void Each(Call& c, int states, const std::function<Values(Value x, Value g, const Values& states)>& step) {
  const int count = (c.inputs() - 2) / (2 + states);
  for (int i = 0; i < count && c.ok(); ++i) {
    Values state;
    for (int s = 0; s < states; ++s) state.push_back(c.x(2 + (2 + s) * count + i));
    const Values made = step(c.x(2 + i), c.x(2 + count + i), state);
    for (size_t r = 0; r < made.size(); ++r) c.Return(static_cast<int>(r) * count + i, made[r]);
  }
}

void Momentum(Call& c) {
  const Value r = c.x(0);
  const double alpha = c.Float("alpha", 0), norm = c.Float("norm_coefficient", 0);
  const bool nesterov = c.Str("mode", "standard") == "nesterov";
  const Value first = c.Add("Gt", {c.x(1), c.Like(0, c.x(1))});
  const Value beta = c.Add("Where", {first, c.Scalar(c.Float("beta", 0), DType::kF32), c.Scalar(1, DType::kF32)});
  Each(c, 1, [&](Value x, Value g, const Values& state) -> Values {
    g = Plus(c, g, Scaled(c, x, norm));
    const Value v = Plus(c, Scaled(c, state[0], alpha), Times(c, g, beta));
    const Value by = nesterov ? Plus(c, g, Scaled(c, v, alpha)) : v;
    return {c.Add("Sub", {x, Times(c, by, r)}), v};
  });
}

void Adagrad(Call& c) {
  const double norm = c.Float("norm_coefficient", 0), eps = c.Float("epsilon", 0);
  const Value decayed =
      Plus(c, Scaled(c, c.Cast(c.x(1), DType::kF32), c.Float("decay_factor", 0)), c.Scalar(1, DType::kF32));
  const Value r = c.Add("Div", {c.x(0), decayed});
  Each(c, 1, [&](Value x, Value g, const Values& state) -> Values {
    g = Plus(c, g, Scaled(c, x, norm));
    const Value h = Plus(c, state[0], Times(c, g, g));
    const Value root = c.Add("Sqrt", {h});
    return {c.Add("Sub", {x, c.Add("Div", {Times(c, g, r), Plus(c, root, c.Like(eps, root))})}), h};
  });
}

void Adam(Call& c) {
  const double alpha = c.Float("alpha", 0.9), beta = c.Float("beta", 0.999), eps = c.Float("epsilon", 0);
  const double norm = c.Float("norm_coefficient", 0), after = c.Float("norm_coefficient_post", 0);
  const Value steps = c.Cast(c.x(1), DType::kF32), one = c.Scalar(1, DType::kF32);
  // Of the first step on, what begins at 0 is made larger.
  const auto short_of = [&](double power) {
    return c.Add("Sub", {one, c.Add("Pow", {c.Scalar(power, DType::kF32), steps})});
  };
  const Value corrected = c.Add("Div", {Times(c, c.x(0), c.Add("Sqrt", {short_of(beta)})), short_of(alpha)});
  const Value r = c.Add("Where", {c.Add("Gt", {c.x(1), c.Like(0, c.x(1))}), corrected, c.x(0)});
  Each(c, 2, [&](Value x, Value g, const Values& state) -> Values {
    g = Plus(c, g, Scaled(c, x, norm));
    const Value v = Plus(c, Scaled(c, state[0], alpha), Scaled(c, g, 1 - alpha));
    const Value h = Plus(c, Scaled(c, state[1], beta), Scaled(c, Times(c, g, g), 1 - beta));
    const Value root = c.Add("Sqrt", {h});
    const Value next = c.Add("Sub", {x, c.Add("Div", {Times(c, r, v), Plus(c, root, c.Like(eps, root))})});
    return {Scaled(c, next, 1 - after), v, h};
  });
}

constexpr Importer kRows[] = {
    {"Adagrad", Adagrad, "", 5, kDomain},
    {"Adam", Adam, "", 6, kDomain},
    {"Momentum", Momentum, "", 5, kDomain},
};

}  // namespace

std::span<const Importer> TrainingImporters() { return kRows; }

}  // namespace quern::onnx
