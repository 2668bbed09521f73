// Extent: a polynomial in symbols, of degree at most one in each (3*BATCH*SEQ + 2). The size of a dimension, an offset
// or a loop bound that stays exact when sizes are not known yet.
//
// Canonical: terms are sorted, no coefficient is zero, so equal polynomials compare equal. Value type, cheap for the
// common case of a constant.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
    std::vector<std::string> symbols;  // sorted; empty for the constant term
    int64_t coefficient;
    bool operator==(const Term&) const = default;
  };

  Extent() = default;        // zero
  Extent(int64_t constant);  // NOLINT: an extent is most often a plain number
  static Extent Symbol(std::string name);

  bool is_constant() const { return terms_.empty() || (terms_.size() == 1 && terms_[0].symbols.empty()); }
  // Precondition: is_constant().
  int64_t constant() const;
  const std::vector<Term>& terms() const { return terms_; }

  Extent operator+(const Extent& other) const;
  Extent operator-(const Extent& other) const;
  Extent operator*(const Extent& other) const;
  bool operator==(const Extent& other) const = default;

  // The quotient where it is exact for every value of the symbols (dividing by a constant or a single term), or
  // nullopt.
  std::optional<Extent> DividedBy(const Extent& divisor) const;
  // `symbol` replaced by `value` in every term.
  Extent Substitute(std::string_view symbol, const Extent& value) const;

  // The value under `binding`; an error names the first symbol it lacks, or overflow of 64 bits.
  StatusOr<int64_t> Evaluate(const Binding& binding) const;
  // A lower bound over all values in `ranges` (absent symbols: 1 and above); nullopt when unbounded below.
  std::optional<int64_t> LowerBound(const SymbolRanges& ranges) const;
  std::optional<int64_t> UpperBound(const SymbolRanges& ranges) const;
  // True when this - other >= 0 is proved for all symbols in `ranges`.
  bool ProvablyAtLeast(const Extent& other, const SymbolRanges& ranges) const;

  // The symbols that occur, sorted.
  std::vector<std::string> Symbols() const;
  // "2*BATCH*SEQ + 3"; Parse reads the same back.
  std::string ToString() const;
  static StatusOr<Extent> Parse(std::string_view text);

 private:
  void Add(Term term);
  std::vector<Term> terms_;
};

}  // namespace quern
