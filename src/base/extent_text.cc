// Extents as text.

#include <cctype>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "base/extent.h"

namespace quern {

std::string Extent::ToString() const {
  if (terms().empty()) return "0";
  std::string text;
  for (const Term& term : terms()) {
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

namespace {

//   sum := ["-"] product (("+" | "-") product)*        product := factor ("*" factor)*
//   factor := number | name | "(" sum ")" | ("ceil" | "floor") "(" sum "/" number ")"
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  StatusOr<Extent> Whole() {
    QUERN_ASSIGN(Extent extent, Sum(0));
    return at_ < text_.size() ? Fail() : StatusOr<Extent>(std::move(extent));
  }

 private:
  static constexpr int kDeepest = 16;

  Status Fail() const {
    return absl::InvalidArgumentError(
        absl::StrFormat("bad extent \"%s\" at character %d", std::string(text_), at_ + 1));
  }
  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Accept(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  StatusOr<Extent> Sum(int depth) {
    if (depth > kDeepest) return Fail();
    Extent sum;
    int64_t sign = Accept('-') ? -1 : 1;
    while (true) {
      Extent product(sign);
      do {
        QUERN_ASSIGN(const Extent factor, Factor(depth));
        product = product * factor;
      } while (Accept('*'));
      sum = sum + product;
      if (Accept('+'))
        sign = 1;
      else if (Accept('-'))
        sign = -1;
      else
        return sum;
    }
  }

  StatusOr<Extent> Factor(int depth) {
    Skip();
    if (at_ >= text_.size()) return Fail();
    if (std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      QUERN_ASSIGN(const int64_t number, Number());
      return Extent(number);
    }
    if (Accept('(')) {
      QUERN_ASSIGN(Extent sum, Sum(depth + 1));
      return Accept(')') ? StatusOr<Extent>(std::move(sum)) : Fail();
    }
    const size_t start = at_;
    if (!std::isalpha(static_cast<unsigned char>(text_[at_])) && text_[at_] != '_') return Fail();
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    const bool up = name == "ceil";
    if ((!up && name != "floor") || !Accept('(')) return Symbol(std::string(name));
    QUERN_ASSIGN(const Extent numerator, Sum(depth + 1));
    if (!Accept('/')) return Fail();
    Skip();
    QUERN_ASSIGN(const int64_t divisor, Number());
    if (divisor < 1 || !Accept(')')) return Fail();
    Skip();
    return up ? numerator.CeilDividedBy(divisor) : numerator.FloorDividedBy(divisor);
  }
  static Extent Symbol(std::string name) { return Extent::Symbol(std::move(name)); }

  StatusOr<int64_t> Number() {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || text_[at_] == '-') return Fail();
    at_ = stop - text_.data();
    return value;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

StatusOr<Extent> Extent::Parse(std::string_view text) { return Parser(text).Whole(); }

}  // namespace quern
