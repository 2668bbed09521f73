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

}  // namespace

std::optional<int64_t> Extent::LowerBound(const SymbolRanges& ranges) const {
  if (overflowed()) return std::nullopt;
  const std::optional<int64_t> interval = IntervalBound(ranges), relaxed = RelaxedBound(ranges);
  return interval && relaxed ? std::max(*interval, *relaxed) : (interval ? interval : relaxed);
}

std::optional<int64_t> Extent::IntervalBound(const SymbolRanges& ranges) const {
  int64_t sum = 0;
  for (const Term& term : terms()) {
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
