#include "kir/cost_value.h"

#include <algorithm>
#include <numeric>

namespace quern::kir {
namespace {

int64_t Clamp(__int128 value) { return static_cast<int64_t>(std::clamp<__int128>(value, -kFarIndex, kFarIndex)); }

struct Ends {
  int64_t low, high;
};

Ends Product(const CostValue& a, const CostValue& b) {
  const __int128 corners[] = {static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
                              static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  return {Clamp(*std::min_element(corners, corners + 4)), Clamp(*std::max_element(corners, corners + 4))};
}

Ends Modulo(const CostValue& a, const CostValue& b) {
  if (!b.constant() || b.value <= 0) return {-kFarIndex, kFarIndex};
  const int64_t by = b.value;
  const auto floor = [&](int64_t x) { return x / by - (x % by < 0 ? 1 : 0); };
  if (a.bounded() && floor(a.low) == floor(a.high)) return {a.low - floor(a.low) * by, a.high - floor(a.high) * by};
  return {0, by - 1};
}

// The step of what is made of values of such steps: sums keep what they share, constants stretch it.
int64_t StepOf(Op op, const CostValue& a, const CostValue& b) {
  if (a.step == 0 && b.step == 0) return 0;
  if (op == Op::kNeg) return a.step;
  if (op == Op::kAdd || op == Op::kSub) return std::gcd(a.step, b.step);
  if (op != Op::kMul || !a.known || !b.known || (a.step != 0 && b.step != 0)) return 1;
  int64_t step;
  const bool far =
      a.step == 0 ? __builtin_mul_overflow(b.step, a.value, &step) : __builtin_mul_overflow(a.step, b.value, &step);
  return far ? 1 : step < 0 ? -step : step;
}

}  // namespace

CostValue ApplyToValues(Op op, DType dtype, std::span<const CostValue> args) {
  CostValue result;
  bool known = true, monotone = true, constant = true;
  for (const CostValue& arg : args) {
    result.loops |= arg.loops;
    known = known && arg.known;
    monotone = monotone && arg.monotone;
    constant = constant && arg.constant();
  }
  const CostValue& a = args[0];
  const CostValue& b = args.size() > 1 ? args[1] : args[0];
  if (op == Op::kSelect) {
    if (a.known) {
      result = args[a.value != 0 ? 1 : 2];
      if (a.step != 0) result.step = 1;
      return result;
    }
    result.low = std::min(args[1].low, args[2].low);
    result.high = std::max(args[1].high, args[2].high);
    return result;
  }
  if (known) {
    result.known = true;
    result.value = EvalInteger(op, dtype, a.value, b.value, 0);
  }
  Ends ends = {-kFarIndex, kFarIndex};
  switch (op) {
    case Op::kAdd:
      ends = {Clamp(static_cast<__int128>(a.low) + b.low), Clamp(static_cast<__int128>(a.high) + b.high)};
      break;
    case Op::kSub:
      ends = {Clamp(static_cast<__int128>(a.low) - b.high), Clamp(static_cast<__int128>(a.high) - b.low)};
      break;
    case Op::kNeg: ends = {-a.high, -a.low}; break;
    case Op::kMin: ends = {std::min(a.low, b.low), std::min(a.high, b.high)}; break;
    case Op::kMax: ends = {std::max(a.low, b.low), std::max(a.high, b.high)}; break;
    case Op::kMul:
      ends = Product(a, b);
      monotone = monotone && (a.constant() || b.constant());
      break;
    case Op::kDiv:
      if (b.constant() && b.value > 0)
        ends = {a.low / b.value, a.high / b.value};
      else
        monotone = false;
      break;
    case Op::kMod:
      ends = Modulo(a, b);
      monotone = false;
      break;
    default:  // anything else is no index arithmetic that a bound is known for
      monotone = false;
  }
  result.low = ends.low;
  result.high = ends.high;
  result.step = StepOf(op, a, b);
  if (constant && known) result.low = result.high = result.value;
  result.monotone = known && (monotone || constant);
  return result;
}

}  // namespace quern::kir
