// Quotients of extents: their canonical form, and what they mean.

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/divide.h"
#include "base/extent.h"

namespace quern {
namespace {

constexpr std::string_view kOpen = "ceil(", kOver = " / ";
constexpr int kDeepest = 12;  // parentheses within each other

// Parentheses within each other.
int Depth(std::string_view text) {
  int depth = 0, deepest = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

std::optional<Quotient> Parsed(std::string_view factor) {
  const size_t over = factor.rfind(kOver);
  if (over == std::string_view::npos) return std::nullopt;
  Quotient quotient;
  const std::string_view divisor = factor.substr(over + kOver.size(), factor.size() - 1 - over - kOver.size());
  const auto [stop, error] = std::from_chars(divisor.data(), divisor.data() + divisor.size(), quotient.divisor);
  StatusOr<Extent> numerator = Extent::Parse(factor.substr(kOpen.size(), over - kOpen.size()));
  if (error != std::errc() || stop != divisor.data() + divisor.size() || !numerator.ok()) return std::nullopt;
  quotient.numerator = *std::move(numerator);
  return quotient;
}

// Quotients by their text: proofs ask for the same few thousands of times. Forgotten when there are too many.
struct Known {
  static constexpr size_t kMost = 4096;

  std::mutex mutex;
  std::map<std::string, std::optional<Quotient>, std::less<>> quotients;
};

}  // namespace

std::optional<Quotient> Quotient::Of(std::string_view factor) {
  if (!factor.ends_with(')') || !factor.starts_with(kOpen)) return std::nullopt;
  static Known* const known = new Known;
  {
    const std::lock_guard lock(known->mutex);
    if (const auto it = known->quotients.find(factor); it != known->quotients.end()) return it->second;
  }
  std::optional<Quotient> quotient = Parsed(factor);  // which may ask for those in its numerator
  const std::lock_guard lock(known->mutex);
  if (known->quotients.size() == Known::kMost) known->quotients.clear();
  known->quotients.emplace(factor, quotient);
  return quotient;
}

std::string Quotient::ToString() const {
  const bool sum = numerator.terms().size() > 1;
  return absl::StrCat("ceil(", sum ? "(" : "", numerator.ToString(), sum ? ")" : "", " / ", divisor, ")");
}

Extent Extent::CeilDividedBy(int64_t divisor) const {
  QUERN_CHECK(divisor > 0);
  if (divisor == 1 || overflowed()) return *this;
  Terms wholes, rests;
  int64_t constant = 0, common = divisor;
  for (const Term& term : terms()) {
    const int64_t quotient = FloorDiv(term.coefficient, divisor), left = term.coefficient - quotient * divisor;
    if (quotient != 0) wholes.push_back({term.symbols, quotient});
    if (term.symbols.empty()) {
      constant = left;
    } else if (left != 0) {
      rests.push_back({term.symbols, left});
      common = std::gcd(common, left);
    }
  }
  // The symbols come to a multiple of `common`.
  divisor /= common;
  constant = CeilDiv(constant, common);
  for (Term& term : rests) term.coefficient /= common;
  const Extent whole = Extent(std::move(wholes)) + Extent(constant / divisor), rest(std::move(rests));
  constant %= divisor;
  if (rest == Extent()) return whole + Extent(constant > 0 ? 1 : 0);

  // A quotient of a quotient stays one, though ceil(ceil(S / 2) / 2) is ceil(S / 4): an index into the former is proved
  // by it to be inside, not by the latter.
  std::string factor = Quotient{rest + Extent(constant), divisor}.ToString();
  if (Depth(factor) > kDeepest) return Extent(kOverflow);
  return whole + Symbol(std::move(factor));
}

Extent Extent::FloorDividedBy(int64_t divisor) const { return (*this - Extent(divisor - 1)).CeilDividedBy(divisor); }

Extent Extent::Substitute(std::string_view symbol, const Extent& value) const {
  Extent result;
  for (const Term& term : terms()) {
    Extent product(term.coefficient);
    for (const std::string& factor : term.symbols) {
      if (factor == symbol) {
        product = product * value;
      } else if (const std::optional<Quotient> quotient = Quotient::Of(factor)) {
        product = product * quotient->numerator.Substitute(symbol, value).CeilDividedBy(quotient->divisor);
      } else {
        product = product * Symbol(factor);
      }
    }
    result = result + product;
  }
  return result;
}

std::vector<std::string> Extent::Symbols() const {
  std::vector<std::string> names;
  for (const std::string& factor : Factors()) {
    const std::optional<Quotient> quotient = Quotient::Of(factor);
    if (!quotient) {
      names.push_back(factor);
      continue;
    }
    const std::vector<std::string> inner = quotient->numerator.Symbols();
    names.insert(names.end(), inner.begin(), inner.end());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace quern
