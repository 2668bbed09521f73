// Extent: a polynomial in symbols (3*BATCH*SEQ + 2). The size of a dimension, an offset or a loop bound that stays
// exact when sizes are not known yet.
//
// Canonical: terms are sorted, no coefficient is zero, so equal polynomials compare equal. Value type, cheap to copy:
// constants lie in place, other terms are shared and never change.
//
// What a stride leaves of a size is a quotient, which stands in terms as a factor beside the symbols: a size that is
// named by its meaning, "ceil(SEQ / 2)". It is canonical too, as far as its numerator goes: coefficients in it are at
// least 0 and below the divisor, for the rest stands outside (ceil((3*S - 1) / 2) is S + ceil((S + 1) / 2) - 1), and it
// has no divisor in common with the symbols. So it is never negative.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace quern {

// The size of each symbol, by name.
using Binding = std::map<std::string, int64_t, std::less<>>;

// The values a symbol may take, both ends included.
struct SymbolRange {
  int64_t low = 1;
  int64_t high = INT64_MAX;
  bool operator==(const SymbolRange&) const = default;
};
using SymbolRanges = std::map<std::string, SymbolRange, std::less<>>;

class Extent {
 public:
  struct Term {
    std::vector<std::string> symbols;  // the factors, sorted: symbols and quotients; empty for the constant term
    int64_t coefficient;
    // Whether it does not fit 64 bits: text may hold any sizes. An extent with such a term has no value and no bounds.
    bool overflowed() const { return coefficient >= kOverflow || coefficient <= -kOverflow; }
    bool operator==(const Term&) const = default;
  };
  // What a coefficient that does not fit is, with its sign, and stays.
  static constexpr int64_t kOverflow = INT64_MAX;

  using Terms = std::vector<Term>;

  Extent() = default;        // zero
  Extent(int64_t constant);  // NOLINT: an extent is most often a plain number
  explicit Extent(Term term);
  static Extent Symbol(std::string name);

  bool is_constant() const { return symbolic_ == nullptr; }
  // Precondition: is_constant().
  int64_t constant() const;
  // Those of the highest degree first, the constant term last. Valid as long as the extent lives and is not assigned.
  std::span<const Term> terms() const {
    if (symbolic_ != nullptr) return *symbolic_;
    return {&constant_, static_cast<size_t>(constant_.coefficient != 0)};
  }

  Extent operator+(const Extent& other) const;
  Extent operator-(const Extent& other) const;
  Extent operator*(const Extent& other) const;
  bool operator==(const Extent& other) const {
    if (is_constant() || other.is_constant()) {
      return is_constant() == other.is_constant() && constant_.coefficient == other.constant_.coefficient;
    }
    return symbolic_ == other.symbolic_ || *symbolic_ == *other.symbolic_;
  }

  // The quotient where it is exact for every value of the symbols (dividing by a constant or a single term), or
  // nullopt.
  std::optional<Extent> DividedBy(const Extent& divisor) const;
  // The quotient for `divisor` > 0, toward plus and minus infinity; overflowed where quotients of sums of quotients go
  // deeper than any op makes them.
  Extent CeilDividedBy(int64_t divisor) const;
  Extent FloorDividedBy(int64_t divisor) const;
  // `symbol` replaced by `value` in every term and quotient.
  Extent Substitute(std::string_view symbol, const Extent& value) const;
  // Factors, quotients among them, under the names that `names` has for them.
  Extent Renamed(const std::map<std::string, std::string, std::less<>>& names) const;

  // The value under `binding`; an error names the first symbol it lacks, or overflow of 64 bits.
  StatusOr<int64_t> Evaluate(const Binding& binding) const;
  // The symbol that `known` lacks, with its value where the extent is `value`, rounded down where none is exact;
  // nullopt where it lacks none or several, or the symbol stands elsewhere than alone in a term.
  std::optional<std::pair<std::string, int64_t>> SolvedFor(int64_t value, const Binding& known) const;
  // A lower bound over all values in `ranges` (absent symbols: 1 and above); nullopt when unbounded below.
  std::optional<int64_t> LowerBound(const SymbolRanges& ranges) const;
  std::optional<int64_t> UpperBound(const SymbolRanges& ranges) const;
  // True when this - other >= 0 is proved for all symbols in `ranges`.
  bool ProvablyAtLeast(const Extent& other, const SymbolRanges& ranges) const;

  // The greatest number that divides the coefficients of all terms with symbols; 0: there is none.
  int64_t CommonFactor() const;
  // The symbols that occur, in numerators too, sorted.
  std::vector<std::string> Symbols() const;
  // What terms are made of: symbols and quotients, sorted.
  std::vector<std::string> Factors() const;
  // "2*BATCH*SEQ + 3", "ceil(SEQ / 2) - 1"; Parse reads the same back, and floor(SEQ / 2).
  std::string ToString() const;
  static StatusOr<Extent> Parse(std::string_view text);

 private:
  // Of terms in order, none of them zero.
  explicit Extent(Terms terms);
  // The bound without one of the quotients, by d*ceil(n / d) in n..n + d - 1; nullopt where there is none.
  std::optional<int64_t> RelaxedBound(const SymbolRanges& ranges) const;
  bool overflowed() const;

  Term constant_{{}, 0};                   // of an extent without symbols: all of it
  std::shared_ptr<const Terms> symbolic_;  // of others: every term
};

// ceil(numerator / divisor).
struct Quotient {
  Extent numerator;
  int64_t divisor = 1;

  // What a factor of a term means, or nullopt for a symbol.
  static std::optional<Quotient> Of(std::string_view factor);
  std::string ToString() const;  // the factor
};

}  // namespace quern
