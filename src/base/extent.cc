#include "base/extent.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/divide.h"

namespace quern {
namespace {

bool Overflowed(int64_t coefficient) { return Extent::Term{{}, coefficient}.overflowed(); }

int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (Overflowed(a)) return a;
  if (Overflowed(b)) return b;
  if (__builtin_add_overflow(a, b, &sum) || Overflowed(sum)) return a > 0 ? Extent::kOverflow : -Extent::kOverflow;
  return sum;
}

int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (Overflowed(a) || Overflowed(b) || __builtin_mul_overflow(a, b, &product) || Overflowed(product)) {
    return (a > 0) == (b > 0) ? Extent::kOverflow : -Extent::kOverflow;
  }
  return product;
}

StatusOr<int64_t> ValueOf(const std::string& factor, const Binding& binding) {
  if (const std::optional<Quotient> quotient = Quotient::Of(factor)) {
    QUERN_ASSIGN(const int64_t numerator, quotient->numerator.Evaluate(binding));
    return CeilDiv(numerator, quotient->divisor);
  }
  const auto it = binding.find(factor);
  if (it == binding.end()) return absl::InvalidArgumentError(absl::StrFormat("symbol %s is not bound", factor));
  return it->second;
}

// Adds to terms in order: higher degree first, then by name: "2*BATCH*SEQ + SEQ + 3" reads naturally.
void AddTerm(Extent::Terms& terms, Extent::Term term) {
  if (term.coefficient == 0) return;
  const auto less = [](const Extent::Term& a, const Extent::Term& b) {
    if (a.symbols.size() != b.symbols.size()) return a.symbols.size() > b.symbols.size();
    return a.symbols < b.symbols;
  };
  const auto it = std::lower_bound(terms.begin(), terms.end(), term, less);
  if (it != terms.end() && it->symbols == term.symbols) {
    it->coefficient = Sum(it->coefficient, term.coefficient);
    if (it->coefficient == 0) terms.erase(it);
    return;
  }
  terms.insert(it, std::move(term));
}

Extent::Terms TermsOf(const Extent& extent) { return {extent.terms().begin(), extent.terms().end()}; }

}  // namespace

Extent::Extent(int64_t constant) : constant_{{}, std::max(constant, -kOverflow)} {}

Extent::Extent(Term term) {
  if (term.coefficient == 0 || term.symbols.empty()) {
    constant_.coefficient = term.coefficient;
    return;
  }
  std::sort(term.symbols.begin(), term.symbols.end());
  symbolic_ = std::make_shared<const Terms>(1, std::move(term));
}

Extent::Extent(Terms terms) {
  if (terms.empty()) return;
  if (terms[0].symbols.empty()) {
    constant_.coefficient = terms[0].coefficient;
    return;
  }
  symbolic_ = std::make_shared<const Terms>(std::move(terms));
}

Extent Extent::Symbol(std::string name) { return Extent(Term{{std::move(name)}, 1}); }

int64_t Extent::constant() const {
  QUERN_CHECK(is_constant());
  return constant_.coefficient;
}

bool Extent::overflowed() const {
  const std::span<const Term> all = terms();
  return std::any_of(all.begin(), all.end(), [](const Term& term) { return term.overflowed(); });
}

Extent Extent::operator+(const Extent& other) const {
  if (other == Extent()) return *this;
  if (*this == Extent()) return other;
  if (is_constant() && other.is_constant()) {
    return Extent(Sum(constant_.coefficient, other.constant_.coefficient));
  }
  Terms sum = TermsOf(*this);
  for (const Term& term : other.terms()) AddTerm(sum, term);
  return Extent(std::move(sum));
}

Extent Extent::operator-(const Extent& other) const {
  if (other == Extent()) return *this;
  if (is_constant() && other.is_constant()) {
    return Extent(Sum(constant_.coefficient, -other.constant_.coefficient));
  }
  Terms difference = TermsOf(*this);
  for (const Term& term : other.terms()) AddTerm(difference, {term.symbols, -term.coefficient});
  return Extent(std::move(difference));
}

Extent Extent::operator*(const Extent& other) const {
  if (is_constant() && other.is_constant()) {
    const int64_t a = constant_.coefficient, b = other.constant_.coefficient;
    return Extent(a == 0 || b == 0 ? 0 : Product(a, b));
  }
  if (other == Extent(1)) return *this;
  if (*this == Extent(1)) return other;
  Terms all;
  for (const Term& a : terms()) {
    for (const Term& b : other.terms()) {
      Term product{a.symbols, Product(a.coefficient, b.coefficient)};
      product.symbols.insert(product.symbols.end(), b.symbols.begin(), b.symbols.end());
      std::sort(product.symbols.begin(), product.symbols.end());
      AddTerm(all, std::move(product));
    }
  }
  return Extent(std::move(all));
}

std::optional<Extent> Extent::DividedBy(const Extent& divisor) const {
  if (divisor == Extent()) return std::nullopt;
  if (overflowed() || divisor.overflowed()) return std::nullopt;
  if (*this == divisor) return Extent(1);
  if (divisor.terms().size() != 1) {
    // The only other case that comes up is c * divisor.
    if (terms().size() != divisor.terms().size()) return std::nullopt;
    if (terms()[0].coefficient % divisor.terms()[0].coefficient != 0) return std::nullopt;
    const Extent factor(terms()[0].coefficient / divisor.terms()[0].coefficient);
    if (divisor * factor == *this) return factor;
    return std::nullopt;
  }
  const Term& by = divisor.terms()[0];
  Terms result;
  for (const Term& term : terms()) {
    if (term.coefficient % by.coefficient != 0) return std::nullopt;
    Term quotient{term.symbols, term.coefficient / by.coefficient};
    for (const std::string& symbol : by.symbols) {
      auto it = std::find(quotient.symbols.begin(), quotient.symbols.end(), symbol);
      if (it == quotient.symbols.end()) return std::nullopt;
      quotient.symbols.erase(it);
    }
    AddTerm(result, std::move(quotient));
  }
  return Extent(std::move(result));
}

Extent Extent::Renamed(const std::map<std::string, std::string, std::less<>>& names) const {
  Extent result;
  for (Term term : terms()) {
    for (std::string& factor : term.symbols) {
      if (const auto name = names.find(factor); name != names.end()) factor = name->second;
    }
    result = result + Extent(std::move(term));
  }
  return result;
}

StatusOr<int64_t> Extent::Evaluate(const Binding& binding) const {
  int64_t sum = 0;
  for (const Term& term : terms()) {
    int64_t product = term.coefficient;
    if (term.overflowed()) return absl::OutOfRangeError(absl::StrFormat("extent %s overflows 64 bits", ToString()));
    for (const std::string& factor : term.symbols) {
      QUERN_ASSIGN(const int64_t value, ValueOf(factor, binding));
      if (__builtin_mul_overflow(product, value, &product)) {
        return absl::OutOfRangeError(absl::StrFormat("extent %s overflows 64 bits", ToString()));
      }
    }
    if (__builtin_add_overflow(sum, product, &sum)) {
      return absl::OutOfRangeError(absl::StrFormat("extent %s overflows 64 bits", ToString()));
    }
  }
  return sum;
}

std::optional<std::pair<std::string, int64_t>> Extent::SolvedFor(int64_t value, const Binding& known) const {
  Extent rest = *this;
  for (const std::string& symbol : Symbols()) {
    if (const auto it = known.find(symbol); it != known.end()) rest = rest.Substitute(symbol, Extent(it->second));
  }
  if (rest.overflowed() || rest.is_constant() || rest.terms().size() > 2 || rest.Factors() != rest.Symbols() ||
      rest.Factors().size() != 1 || rest.terms()[0].symbols.size() != 1)
    return std::nullopt;
  const int64_t constant = rest.terms().size() == 2 ? rest.terms()[1].coefficient : 0;
  if (__builtin_sub_overflow(value, constant, &value)) return std::nullopt;
  return std::pair(rest.terms()[0].symbols[0], FloorDiv(value, rest.terms()[0].coefficient));
}

std::vector<std::string> Extent::Factors() const {
  std::vector<std::string> names;
  for (const Term& term : terms()) names.insert(names.end(), term.symbols.begin(), term.symbols.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

int64_t Extent::CommonFactor() const {
  if (overflowed()) return 0;
  int64_t common = 0;
  for (const Term& term : terms()) {
    if (!term.symbols.empty()) common = std::gcd(common, term.coefficient);
  }
  return common;
}

}  // namespace quern
