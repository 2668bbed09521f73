// Integer expressions as polynomials. What is not a polynomial (min, division, a loaded value) becomes a variable with
// the bounds that its operator gives; equal operands give the same variable.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "kir/parts.h"
#include "kir/verify_state.h"

namespace quern::kir {
namespace {

// Smallest and largest value of an integer dtype as int64; nullopt for those of 64 bits.
std::optional<std::pair<int64_t, int64_t>> RangeOf(DType dtype) {
  switch (dtype) {
    case DType::kI8: return {{INT8_MIN, INT8_MAX}};
    case DType::kI16: return {{INT16_MIN, INT16_MAX}};
    case DType::kI32: return {{INT32_MIN, INT32_MAX}};
    case DType::kU8: return {{0, UINT8_MAX}};
    case DType::kU16: return {{0, UINT16_MAX}};
    case DType::kU32: return {{0, UINT32_MAX}};
    case DType::kBool: return {{0, 1}};
    default: return std::nullopt;
  }
}

}  // namespace

template <typename Define>
Extent Verifier::Memo(std::string_view function, const Extent& a, const Extent& b, std::string_view hint,
                      Define define) {
  const std::string key =
      absl::StrCat(absl::string_view(function.data(), function.size()), "|", a.ToString(), "|", b.ToString());
  if (auto it = memo_.find(key); it != memo_.end()) return it->second;
  const IndexProver::Id id = prover_.AddFresh(hint);
  prover_.SetFunctionOf(id, {a, b});
  define(id);
  return memo_[key] = prover_.Variable(id);
}

Extent Verifier::Unknown(DType dtype, std::string_view hint) {
  const IndexProver::Id id = prover_.AddFresh(hint);
  if (const auto range = RangeOf(dtype)) {
    prover_.SetLow(id, range->first);
    prover_.SetHigh(id, range->second);
  }
  return prover_.Variable(id);
}

Extent Verifier::InRange(const Extent& value, DType dtype) {
  if (dtype == DType::kI64) return value;
  const auto range = RangeOf(dtype);
  if (range && prover_.AtMost(range->first, value) && prover_.AtMost(value, range->second)) return value;
  return Unknown(dtype, "wrapped");
}

Extent Verifier::Quotient(const Extent& value, int64_t divisor) {
  if (divisor == 1) return value;
  if (value.is_constant()) return FloorDiv(value.constant(), divisor);
  // What is a multiple of the divisor may be divided by itself: (64 g + f) / 32 is 2 g + f / 32.
  Extent whole, rest;
  for (const Extent::Term& term : value.terms()) {
    Extent::Term multiple = term;
    multiple.coefficient = term.symbols.empty() ? FloorDiv(term.coefficient, divisor) : term.coefficient / divisor;
    const int64_t left = term.coefficient - multiple.coefficient * divisor;
    if (left != 0 && !term.symbols.empty()) {
      rest = rest + Extent(term);
    } else {
      if (multiple.coefficient != 0) whole = whole + Extent(multiple);
      rest = rest + Extent(left);
    }
  }
  const bool divides = whole != Extent(0);
  const Extent apart = divides ? whole + Quotient(rest, divisor) : Extent(0);
  if (divides && rest.is_constant()) return apart;
  return Memo("div", value, divisor, "div", [&](IndexProver::Id id) {
    prover_.SetHigh(id, value, divisor);
    prover_.SetLow(id, value - (divisor - 1), divisor);
    if (divides) {
      prover_.SetHigh(id, apart);
      prover_.SetLow(id, apart);
    }
    // The polynomial bounds lose that the quotient is whole: c / 32 of c in 0..95 is in 0..2. Facts will be taken back
    // while the quotient stays, so only bounds that need none count.
    const std::vector<Extent> facts = prover_.Facts(kernel_.facts.size());
    prover_.PopFacts(std::min(prover_.fact_count(), kernel_.facts.size()));
    const std::optional<int64_t> low = prover_.Low(value), high = prover_.High(value);
    for (const Extent& fact : facts) prover_.PushFact(fact);
    if (low) prover_.SetLow(id, FloorDiv(*low, divisor));
    if (high) prover_.SetHigh(id, FloorDiv(*high, divisor));
  });
}

bool Verifier::IsQuotientBelow(const Extent& value, const Extent& limit) const {
  const std::vector<std::string> symbols = value.Symbols();
  if (symbols.size() != 1 || value != Extent::Symbol(symbols[0])) return false;
  const auto found = quotients_.find(symbols[0]);
  if (found == quotients_.end()) return false;
  const auto& [dividend, divisor] = found->second;
  const std::optional<Extent> product = CheckedMultiply(limit, divisor);
  return product && prover_.AtMost(dividend, *product - 1);
}

Extent Verifier::Smaller(const Extent& a, const Extent& b) {
  // The smaller one goes on alone, but a rounded quotient keeps the bound: (6 c + 29) / 6 is at most c + 4, which its
  // own bound does not say once it is multiplied.
  if (OnlyLastingFacts() && prover_.AtMost(a, b)) return prover_.Bounded(a, b);
  if (OnlyLastingFacts() && prover_.AtMost(b, a)) return prover_.Bounded(b, a);
  return Memo("min", a, b, "min", [&](IndexProver::Id id) {
    prover_.SetHigh(id, a);
    prover_.SetHigh(id, b);
    prover_.SetCases(id, {a, b}, /*for_low=*/true, /*for_high=*/false);
  });
}

Extent Verifier::Larger(const Extent& a, const Extent& b) {
  return Memo("max", a, b, "max", [&](IndexProver::Id id) {
    prover_.SetLow(id, a);
    prover_.SetLow(id, b);
    prover_.SetCases(id, {a, b}, /*for_low=*/false, /*for_high=*/true);
  });
}

Extent Verifier::OneOf(const Extent& a, const Extent& b) {
  if (a == b) return a;
  const IndexProver::Id id = prover_.AddFresh("select");
  prover_.SetCases(id, {a, b}, /*for_low=*/true, /*for_high=*/true);
  return prover_.Variable(id);
}

Extent Verifier::ValueOfApply(const Apply& apply, DType dtype) {
  if (dtype == DType::kU64 || dtype == DType::kBool || IsFloat(apply.args.back()->dtype))
    return Unknown(dtype, "value");
  if (apply.op == Op::kSelect) return OneOf(ValueOf(apply.args[1]), ValueOf(apply.args[2]));
  const Extent a = ValueOf(apply.args[0]);
  const Extent b = apply.args.size() > 1 ? ValueOf(apply.args[1]) : Extent(0);
  const std::optional<int64_t> constant = b.is_constant() ? std::optional<int64_t>(b.constant()) : std::nullopt;
  auto checked = [&](const std::optional<Extent>& value) { return value ? *value : Unknown(dtype, "large"); };
  switch (apply.op) {
    case Op::kAdd: return checked(CheckedAdd(a, b));
    case Op::kSub: return checked(CheckedSubtract(a, b));
    case Op::kMul: return checked(CheckedMultiply(a, b));
    case Op::kNeg: return checked(CheckedSubtract(0, a));
    case Op::kMin: return Smaller(a, b);
    case Op::kMax: return Larger(a, b);
    case Op::kAbs: return Larger(a, Extent(0) - a);
    case Op::kShl:
      if (constant && *constant >= 0 && *constant < 62) return checked(CheckedMultiply(a, int64_t{1} << *constant));
      break;
    case Op::kShr:
      if (constant && *constant >= 0 && *constant < 62) return Quotient(a, int64_t{1} << *constant);
      break;
    case Op::kDiv: {
      // Truncates toward zero, which floors what is not negative.
      const bool positive = prover_.NonNegative(a);
      if (constant && *constant > 0) {
        if (positive) return Quotient(a, *constant);
        return Memo("trunc", a, b, "div", [&](IndexProver::Id id) {
          prover_.SetHigh(id, a + (*constant - 1), *constant);
          prover_.SetLow(id, a - (*constant - 1), *constant);
        });
      }
      if (!positive || !prover_.AtMost(1, b)) break;
      return Memo("quotient", a, b, "div", [&](IndexProver::Id id) {
        prover_.SetLow(id, 0);
        prover_.SetHigh(id, a);
        quotients_[prover_.Variable(id).Symbols()[0]] = {a, b};
      });
    }
    case Op::kMod: {
      if (constant && *constant > 0) {
        const std::optional<Extent> product = CheckedMultiply(Quotient(a, *constant), *constant);
        return checked(product ? CheckedSubtract(a, *product) : std::nullopt);
      }
      if (!prover_.AtMost(1, b)) break;
      const IndexProver::Id id = prover_.AddFresh("mod");
      prover_.SetLow(id, 0);
      prover_.SetHigh(id, b - 1);
      return prover_.Variable(id);
    }
    case Op::kAnd:
      if (constant && *constant >= 0) {
        const IndexProver::Id id = prover_.AddFresh("and");
        prover_.SetLow(id, 0);
        prover_.SetHigh(id, *constant);
        return prover_.Variable(id);
      }
      break;
    default: break;  // the others bound nothing
  }
  return Unknown(dtype, "value");
}

Extent Verifier::ValueOf(const ExprRef& expr) {
  if (IsFloat(expr->dtype)) return Unknown(DType::kI64, "float");
  const DType dtype = expr->dtype;
  const auto unknown = [&] { return Unknown(dtype, "value"); };
  return std::visit(Overloaded{
                        [&](const Const& constant) {
                          // Larger ones bound nothing that exists, and leave no room to compute with them.
                          const bool large = constant.integer > kLargest || constant.integer < -kLargest;
                          return large ? Unknown(dtype, "large") : Extent(constant.integer);
                        },
                        [&](const NameRef& name) {
                          auto it = names_.find(name.name);
                          return it != names_.end() && it->second.value ? *it->second.value : Unknown(dtype, name.name);
                        },
                        [&](const Load&) { return unknown(); },
                        [&](const Apply& apply) { return InRange(ValueOfApply(apply, dtype), dtype); },
                        [&](const Cast& cast) {
                          const DType from = cast.value->dtype;
                          const bool whole = IsInteger(from) && from != DType::kU64 && dtype != DType::kBool;
                          return whole ? InRange(ValueOf(cast.value), dtype) : unknown();
                        },
                        [&](const Bits&) { return unknown(); },
                        [&](const Reduce&) { return unknown(); },
                        [&](const Decode&) { return unknown(); },
                    },
                    expr->node);
}

std::pair<Extent, IndexProver::Id> Verifier::NewIndex(const std::string& name, const Extent& low, const Extent& high,
                                                      int64_t step) {
  const IndexProver::Id id = prover_.AddFresh(name);
  prover_.SetLow(id, 0);
  const Extent length = high - low;
  if (const std::optional<Extent> trips = length.DividedBy(step); trips && step != 1) {
    prover_.SetHigh(id, *trips - 1);
  } else {
    prover_.SetHigh(id, length - 1, step);
  }
  // Whole steps, as in Quotient: t..12 by 32 has one.
  const std::optional<int64_t> last = step != 1 && OnlyLastingFacts() ? prover_.High(length - 1) : std::nullopt;
  if (last && *last >= 0) prover_.SetHigh(id, *last / step);
  const std::optional<Extent> scaled = CheckedMultiply(prover_.Variable(id), step);
  const std::optional<Extent> value = scaled ? CheckedAdd(low, *scaled) : std::nullopt;
  return {value ? *value : Unknown(DType::kI64, name), id};
}

void Verifier::Assume(const ExprRef& condition, bool holds) {
  const auto* apply = std::get_if<Apply>(&condition->node);
  if (apply == nullptr) return;
  if (apply->op == Op::kNot) return Assume(apply->args[0], !holds);
  if ((apply->op == Op::kAnd && holds) || (apply->op == Op::kOr && !holds)) {
    if (condition->dtype != DType::kBool) return;
    Assume(apply->args[0], holds);
    return Assume(apply->args[1], holds);
  }
  if (apply->args.size() != 2 || !IsInteger(apply->args[0]->dtype) || apply->args[0]->dtype == DType::kU64) return;
  const Extent a = ValueOf(apply->args[0]), b = ValueOf(apply->args[1]);
  const std::optional<Extent> rise = CheckedSubtract(b, a), fall = CheckedSubtract(a, b);
  if (!rise || !fall) return;
  switch (apply->op) {
    case Op::kLt: prover_.PushFact(holds ? *rise - 1 : *fall); return;
    case Op::kLe: prover_.PushFact(holds ? *rise : *fall - 1); return;
    case Op::kEq:
    case Op::kNe:
      if (holds != (apply->op == Op::kEq)) {
        // Different, so apart by one where the order is known.
        if (prover_.NonNegative(*rise))
          prover_.PushFact(*rise - 1);
        else if (prover_.NonNegative(*fall))
          prover_.PushFact(*fall - 1);
        return;
      }
      prover_.PushFact(*rise);
      prover_.PushFact(*fall);
      return;
    default: return;  // says nothing about sizes
  }
}

}  // namespace quern::kir
