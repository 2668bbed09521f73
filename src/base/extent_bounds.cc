// Bounds of extents over ranges of their symbols.

#include <algorithm>

#include "base/divide.h"
#include "base/extent.h"

namespace quern {
namespace {

// The least value of a factor, or the greatest; nullopt where it has none. Factors are sizes: both are at least 0.
std::optional<int64_t> EndOf(const std::string& factor, bool greatest, const SymbolRanges& ranges) {
  if (const std::optional<Quotient> quotient = Quotient::Of(factor)) {
    const std::optional<int64_t> numerator =
        greatest ? quotient->numerator.UpperBound(ranges) : quotient->numerator.LowerBound(ranges);
    return numerator ? std::optional(std::max<int64_t>(CeilDiv(*numerator, quotient->divisor), 0)) : std::nullopt;
  }
  const auto it = ranges.find(factor);
  const SymbolRange range = it == ranges.end() ? SymbolRange{} : it->second;
  if (!greatest) return range.low;
  return range.high == INT64_MAX ? std::nullopt : std::optional(range.high);
}

// The bound by the ranges of the factors, each for itself.
std::optional<int64_t> BoundByRanges(const Extent& value, const SymbolRanges& ranges) {
  int64_t sum = 0;
  for (const Extent::Term& term : value.terms()) {
    if (term.overflowed()) return std::nullopt;
    int64_t product = term.coefficient;
    for (const std::string& factor : term.symbols) {
      // A negative term is smallest at the upper end.
      const std::optional<int64_t> end = EndOf(factor, term.coefficient < 0, ranges);
      if (!end || __builtin_mul_overflow(product, *end, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

bool IsIn(const Extent::Term& term, const std::string& symbol) {
  return std::find(term.symbols.begin(), term.symbols.end(), symbol) != term.symbols.end();
}

// The bound of f*s + rest where f has one sign, by s at the end of its range where that is least: B*S - 31*B is
// (B)*32 - 31*B for S >= 32. nullopt where no symbol has terms of both signs beside it, for the ranges of factors then
// say as much.
std::optional<int64_t> MonotoneBound(const Extent& value, const SymbolRanges& ranges) {
  for (const std::string& symbol : value.Factors()) {
    const auto range = ranges.find(symbol);
    if (range == ranges.end() || Quotient::Of(symbol)) continue;
    Extent factor, rest;
    for (const Extent::Term& term : value.terms()) {
      if (!IsIn(term, symbol)) {
        rest = rest + Extent(term);
        continue;
      }
      Extent::Term without = term;
      without.symbols.erase(std::find(without.symbols.begin(), without.symbols.end(), symbol));
      factor = factor + Extent(std::move(without));
    }
    // Of 4*S + 3 there is nothing to gain, nor of two extents without a symbol in common.
    const auto shared = [&](const std::string& other) {
      return std::ranges::any_of(rest.terms(), [&](const Extent::Term& term) { return IsIn(term, other); });
    };
    if (std::ranges::none_of(factor.Factors(), shared)) continue;
    const bool rises = BoundByRanges(factor, ranges).value_or(-1) >= 0;
    if (!rises && BoundByRanges(Extent(0) - factor, ranges).value_or(-1) < 0) continue;
    const int64_t end = rises ? range->second.low : range->second.high;
    if (end == INT64_MAX) continue;
    // The first that there is, and on from there: texts may hold any polynomial, and no search may last.
    const Extent there = factor * Extent(end) + rest;
    const std::optional<int64_t> here = BoundByRanges(there, ranges), further = MonotoneBound(there, ranges);
    return here && further ? std::max(*here, *further) : (here ? here : further);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> Extent::LowerBound(const SymbolRanges& ranges) const {
  if (overflowed()) return std::nullopt;
  std::optional<int64_t> best = BoundByRanges(*this, ranges);
  if (best && terms().size() < 2) return best;
  for (const std::optional<int64_t>& bound : {RelaxedBound(ranges), MonotoneBound(*this, ranges)}) {
    if (bound && (!best || *bound > *best)) best = bound;
  }
  return best;
}

std::optional<int64_t> Extent::RelaxedBound(const SymbolRanges& ranges) const {
  const std::vector<std::string> factors = Factors();
  const auto of_quotient = [](const std::string& factor) { return Quotient::Of(factor).has_value(); };
  const auto found = std::find_if(factors.begin(), factors.end(), of_quotient);
  if (found == factors.end()) return std::nullopt;
  const auto [numerator, divisor] = *Quotient::Of(*found);
  // A term c*q*r is at least c*n*r / d for c > 0, and at least c*(n + d - 1)*r / d for c < 0: r is not negative.
  Extent scaled;
  for (const Term& term : terms()) {
    Term rest = term;
    const auto it = std::find(rest.symbols.begin(), rest.symbols.end(), *found);
    if (it == rest.symbols.end()) {
      scaled = scaled + Extent(std::move(rest)) * Extent(divisor);
      continue;
    }
    rest.symbols.erase(it);
    if (std::find(rest.symbols.begin(), rest.symbols.end(), *found) != rest.symbols.end()) return std::nullopt;
    const Extent end = term.coefficient > 0 ? numerator : numerator + Extent(divisor - 1);
    scaled = scaled + Extent(std::move(rest)) * end;
  }
  const std::optional<int64_t> bound = scaled.LowerBound(ranges);
  return bound ? std::optional(CeilDiv(*bound, divisor)) : std::nullopt;
}

std::optional<int64_t> Extent::UpperBound(const SymbolRanges& ranges) const {
  const std::optional<int64_t> negated = (Extent(0) - *this).LowerBound(ranges);
  if (!negated || *negated == INT64_MIN) return std::nullopt;
  return -*negated;
}

bool Extent::ProvablyAtLeast(const Extent& other, const SymbolRanges& ranges) const {
  const std::optional<int64_t> low = (*this - other).LowerBound(ranges);
  return low && *low >= 0;
}

}  // namespace quern
