#include "base/extent.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace quern {
namespace {

// A coefficient that does not fit 64 bits is this, with its sign, and stays so: text may hold any sizes. An extent that
// has one has no value and no bounds.
constexpr int64_t kOverflow = INT64_MAX;

bool Overflowed(int64_t coefficient) { return coefficient >= kOverflow || coefficient <= -kOverflow; }

int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (Overflowed(a)) return a;
  if (Overflowed(b)) return b;
  if (__builtin_add_overflow(a, b, &sum) || Overflowed(sum)) return a > 0 ? kOverflow : -kOverflow;
  return sum;
}

int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (Overflowed(a) || Overflowed(b) || __builtin_mul_overflow(a, b, &product) || Overflowed(product)) {
    return (a > 0) == (b > 0) ? kOverflow : -kOverflow;
  }
  return product;
}

}  // namespace

Extent::Extent(int64_t constant) {
  if (constant != 0) terms_.push_back({{}, std::max(constant, -kOverflow)});
}

Extent Extent::Symbol(std::string name) {
  Extent result;
  result.terms_.push_back({{std::move(name)}, 1});
  return result;
}

int64_t Extent::constant() const {
  QUERN_CHECK(is_constant());
  return terms_.empty() ? 0 : terms_[0].coefficient;
}

void Extent::Add(Term term) {
  if (term.coefficient == 0) return;
  auto less = [](const Term& a, const Term& b) {
    // Higher degree first, then by name: "2*BATCH*SEQ + SEQ + 3" reads naturally.
    if (a.symbols.size() != b.symbols.size()) return a.symbols.size() > b.symbols.size();
    return a.symbols < b.symbols;
  };
  auto it = std::lower_bound(terms_.begin(), terms_.end(), term, less);
  if (it != terms_.end() && it->symbols == term.symbols) {
    it->coefficient = Sum(it->coefficient, term.coefficient);
    if (it->coefficient == 0) terms_.erase(it);
    return;
  }
  terms_.insert(it, std::move(term));
}

Extent Extent::operator+(const Extent& other) const {
  Extent result = *this;
  for (const Term& term : other.terms_) result.Add(term);
  return result;
}

Extent Extent::operator-(const Extent& other) const {
  Extent result = *this;
  for (Term term : other.terms_) {
    term.coefficient = -term.coefficient;
    result.Add(std::move(term));
  }
  return result;
}

Extent Extent::operator*(const Extent& other) const {
  Extent result;
  for (const Term& a : terms_) {
    for (const Term& b : other.terms_) {
      Term product{a.symbols, Product(a.coefficient, b.coefficient)};
      product.symbols.insert(product.symbols.end(), b.symbols.begin(), b.symbols.end());
      std::sort(product.symbols.begin(), product.symbols.end());
      result.Add(std::move(product));
    }
  }
  return result;
}

std::optional<Extent> Extent::DividedBy(const Extent& divisor) const {
  if (divisor.terms_.empty()) return std::nullopt;
  for (const std::vector<Term>* terms : {&terms_, &divisor.terms_}) {
    if (std::any_of(terms->begin(), terms->end(), [](const Term& t) { return Overflowed(t.coefficient); }))
      return std::nullopt;
  }
  if (*this == divisor) return Extent(1);
  if (divisor.terms_.size() != 1) {
    // The only other case that comes up is c * divisor.
    if (terms_.size() != divisor.terms_.size() || terms_.empty()) return std::nullopt;
    if (terms_[0].coefficient % divisor.terms_[0].coefficient != 0) return std::nullopt;
    const Extent factor(terms_[0].coefficient / divisor.terms_[0].coefficient);
    if (divisor * factor == *this) return factor;
    return std::nullopt;
  }
  const Term& by = divisor.terms_[0];
  Extent result;
  for (const Term& term : terms_) {
    if (term.coefficient % by.coefficient != 0) return std::nullopt;
    Term quotient{term.symbols, term.coefficient / by.coefficient};
    for (const std::string& symbol : by.symbols) {
      auto it = std::find(quotient.symbols.begin(), quotient.symbols.end(), symbol);
      if (it == quotient.symbols.end()) return std::nullopt;
      quotient.symbols.erase(it);
    }
    result.Add(std::move(quotient));
  }
  return result;
}

Extent Extent::Substitute(std::string_view symbol, const Extent& value) const {
  Extent result;
  for (const Term& term : terms_) {
    Extent product(term.coefficient);
    for (const std::string& name : term.symbols) {
      product = product * (name == symbol ? value : Symbol(name));
    }
    result = result + product;
  }
  return result;
}

StatusOr<int64_t> Extent::Evaluate(const Binding& binding) const {
  int64_t sum = 0;
  for (const Term& term : terms_) {
    int64_t product = term.coefficient;
    if (Overflowed(product)) return absl::OutOfRangeError(absl::StrFormat("extent %s overflows 64 bits", ToString()));
    for (const std::string& name : term.symbols) {
      auto it = binding.find(name);
      if (it == binding.end()) return absl::InvalidArgumentError(absl::StrFormat("symbol %s is not bound", name));
      if (__builtin_mul_overflow(product, it->second, &product)) {
        return absl::OutOfRangeError(absl::StrFormat("extent %s overflows 64 bits", ToString()));
      }
    }
    if (__builtin_add_overflow(sum, product, &sum)) {
      return absl::OutOfRangeError(absl::StrFormat("extent %s overflows 64 bits", ToString()));
    }
  }
  return sum;
}

std::optional<int64_t> Extent::LowerBound(const SymbolRanges& ranges) const {
  int64_t sum = 0;
  for (const Term& term : terms_) {
    int64_t product = term.coefficient;
    if (Overflowed(product)) return std::nullopt;
    for (const std::string& name : term.symbols) {
      auto it = ranges.find(name);
      const SymbolRange range = it == ranges.end() ? SymbolRange{} : it->second;
      // A negative term is smallest at the upper end. Symbols are sizes, so both ends are >= 0.
      const int64_t end = term.coefficient > 0 ? range.low : range.high;
      if (end == INT64_MAX || __builtin_mul_overflow(product, end, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
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

std::vector<std::string> Extent::Symbols() const {
  std::vector<std::string> names;
  for (const Term& term : terms_) names.insert(names.end(), term.symbols.begin(), term.symbols.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string Extent::ToString() const {
  if (terms_.empty()) return "0";
  std::string text;
  for (const Term& term : terms_) {
    int64_t coefficient = term.coefficient;
    if (text.empty()) {
      if (coefficient < 0) text += "-";
    } else {
      text += coefficient < 0 ? " - " : " + ";
    }
    const uint64_t magnitude =
        coefficient < 0 ? 0 - static_cast<uint64_t>(coefficient) : static_cast<uint64_t>(coefficient);
    bool first = true;
    if (magnitude != 1 || term.symbols.empty()) {
      absl::StrAppend(&text, magnitude);
      first = false;
    }
    for (const std::string& name : term.symbols) {
      absl::StrAppend(&text, first ? "" : "*", name);
      first = false;
    }
  }
  return text;
}

StatusOr<Extent> Extent::Parse(std::string_view text) {
  // sum := ["-"] product (("+"|"-") product)*;  product := factor ("*" factor)*;  factor := number | name
  size_t at = 0;
  auto skip = [&] {
    while (at < text.size() && text[at] == ' ') ++at;
  };
  auto fail = [&] {
    return absl::InvalidArgumentError(absl::StrFormat("bad extent \"%s\" at character %d", std::string(text), at + 1));
  };
  Extent sum;
  int64_t sign = 1;
  skip();
  if (at < text.size() && text[at] == '-') sign = -1, ++at;
  while (true) {
    Extent product(sign);
    while (true) {
      skip();
      if (at >= text.size()) return fail();
      const char c = text[at];
      size_t end = at;
      if (std::isdigit(static_cast<unsigned char>(c))) {
        int64_t value = 0;
        const auto [stop, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
        if (error != std::errc()) return fail();
        end = stop - text.data();
        product = product * Extent(value);
      } else if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
        while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
        product = product * Symbol(std::string(text.substr(at, end - at)));
      } else {
        return fail();
      }
      at = end;
      skip();
      if (at < text.size() && text[at] == '*') {
        ++at;
        continue;
      }
      break;
    }
    sum = sum + product;
    if (at >= text.size()) return sum;
    if (text[at] == '+')
      sign = 1;
    else if (text[at] == '-')
      sign = -1;
    else
      return fail();
    ++at;
  }
}

}  // namespace quern
