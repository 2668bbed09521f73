#include <map>

#include "generate/grammar/grammar.h"
#include "generate/grammar/syntax.h"

namespace quern::grammar {
namespace {

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  StatusOr<Syntax> Run() {
    if (text_.size() > kMostText)
      return absl::ResourceExhaustedError(absl::StrFormat("a grammar has at most %d bytes", kMostText));
    for (Skip(true); at_ < text_.size(); Skip(true)) QUERN_RETURN_IF_ERROR(ParseRule());
    for (size_t i = 0; i < syntax_.rules.size(); ++i) {
      if (!defined_[i]) return ErrorAt(syntax_.rules[i].place, "the rule " + syntax_.rules[i].name + " is not defined");
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) return ErrorAt(here_, "there is no rule called root, where a text begins");
    syntax_.root = root->second;
    return std::move(syntax_);
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void Advance(size_t count) {
    for (; count > 0; --count) {
      if (text_[at_++] == '\n')
        ++here_.line, here_.column = 1;
      else
        ++here_.column;
    }
  }
  bool Take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    Advance(word.size());
    return true;
  }
  // Blanks and comments, and line ends with `lines`.
  void Skip(bool lines) {
    while (at_ < text_.size()) {
      const char c = Peek();
      if (c == '#') {
        while (at_ < text_.size() && Peek() != '\n') Advance(1);
      } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
        Advance(1);
      } else {
        return;
      }
    }
  }

  // The rule called `name`, which may be defined later.
  StatusOr<int> RuleOf(const std::string& name, Place place) {
    const auto [found, added] = rules_.emplace(name, static_cast<int>(syntax_.rules.size()));
    if (added) {
      if (syntax_.rules.size() == kMostRules)
        return absl::ResourceExhaustedError(absl::StrFormat("a grammar has at most %d rules", kMostRules));
      syntax_.rules.push_back({name, place, {}});
      defined_.push_back(false);
    }
    return found->second;
  }

  std::string Name() {
    const size_t begin = at_;
    while (IsNameByte(Peek())) Advance(1);
    return std::string(text_.substr(begin, at_ - begin));
  }

  Status ParseRule() {
    const Place place = here_;
    const std::string name = Name();
    if (name.empty()) return ErrorAt(place, "a rule is expected: name ::= ..");
    Skip(false);
    if (!Take("::=")) return ErrorAt(here_, "::= is expected behind the name of the rule " + name);
    QUERN_ASSIGN(const int rule, RuleOf(name, place));
    if (defined_[static_cast<size_t>(rule)]) return ErrorAt(place, "the rule " + name + " is defined twice");
    defined_[static_cast<size_t>(rule)] = true;
    syntax_.rules[static_cast<size_t>(rule)].place = place;
    Skip(true);
    QUERN_ASSIGN(Expression body, Alternatives(0));
    syntax_.rules[static_cast<size_t>(rule)].body = std::move(body);
    if (at_ < text_.size() && Peek() != '\n') return ErrorAt(here_, "the rule should end here, or go on with |");
    return absl::OkStatus();
  }

  // A line end closes a rule, but not within brackets, behind | or before it.
  StatusOr<Expression> Alternatives(int depth) {
    if (depth > kMostNesting)
      return absl::ResourceExhaustedError(absl::StrFormat("the grammar, %d:%d: more than %d brackets within each other",
                                                          here_.line, here_.column, kMostNesting));
    Expression all = {.kind = Expression::Kind::kAlternatives};
    while (true) {
      QUERN_ASSIGN(Expression one, Sequence(depth));
      all.parts.push_back(std::move(one));
      const size_t at = at_;
      const Place here = here_;
      Skip(true);
      if (Take("|")) {
        Skip(true);
        continue;
      }
      at_ = at;
      here_ = here;
      Skip(depth > 0);
      if (all.parts.size() > 1) return all;
      Expression only = std::move(all.parts[0]);
      return only;
    }
  }

  StatusOr<Expression> Sequence(int depth) {
    Expression sequence;
    while (true) {
      Expression part;
      const Place place = here_;
      if (Peek() == '"') {
        QUERN_ASSIGN(part, Literal());
      } else if (Peek() == '[') {
        QUERN_ASSIGN(part, Class());
      } else if (Take(".")) {
        part = {.kind = Expression::Kind::kChars, .chars = Complement({})};
      } else if (Take("(")) {
        Skip(true);
        QUERN_ASSIGN(part, Alternatives(depth + 1));
        Skip(true);
        if (!Take(")")) return ErrorAt(here_, absl::StrFormat("the ( of %d:%d lacks its )", place.line, place.column));
      } else if (IsNameByte(Peek())) {
        QUERN_ASSIGN(const int rule, RuleOf(Name(), place));
        part = {.kind = Expression::Kind::kRule, .rule = rule};
      } else if (Peek() == '*' || Peek() == '+' || Peek() == '?' || Peek() == '{') {
        return ErrorAt(place, "there is nothing to repeat; of two repetitions put the first in brackets");
      } else {
        return sequence;
      }
      Skip(depth > 0);
      QUERN_RETURN_IF_ERROR(Repetition(part));
      sequence.parts.push_back(std::move(part));
      Skip(depth > 0);
    }
  }

  Status Repetition(Expression& part) {
    int least = 0, most = -1;
    if (Take("?")) {
      most = 1;
    } else if (Take("+")) {
      least = 1;
    } else if (Peek() == '{') {
      Advance(1);
      Skip(true);
      QUERN_ASSIGN(least, Count());
      most = least;
      Skip(true);
      if (Take(",")) {
        Skip(true);
        most = -1;
        if (Peek() != '}') {
          const Place place = here_;
          QUERN_ASSIGN(most, Count());
          if (most < least) return ErrorAt(place, absl::StrFormat("%d is less than %d", most, least));
        }
        Skip(true);
      }
      if (!Take("}")) return ErrorAt(here_, "{m}, {m,} or {m,n} lacks its }");
    } else if (!Take("*")) {
      return absl::OkStatus();
    }
    Expression repeat = {.kind = Expression::Kind::kRepeat, .least = least, .most = most};
    repeat.parts.push_back(std::move(part));
    part = std::move(repeat);
    return absl::OkStatus();
  }

  StatusOr<int> Count() {
    const Place place = here_;
    int count = 0;
    if (Peek() < '0' || Peek() > '9') return ErrorAt(place, "a number of repetitions is expected");
    for (; Peek() >= '0' && Peek() <= '9'; Advance(1)) {
      count = count * 10 + (Peek() - '0');
      if (count > kMostRepeats)
        return absl::ResourceExhaustedError(
            absl::StrFormat("the grammar, %d:%d: more than %d repetitions", place.line, place.column, kMostRepeats));
    }
    return count;
  }

  // A character of a literal or a class, maybe escaped.
  StatusOr<uint32_t> Character() {
    const Place place = here_;
    if (Peek() != '\\') {
      const auto [point, length] = Decode(text_.substr(at_));
      if (length == 0) return ErrorAt(place, "the text is no UTF-8");
      Advance(static_cast<size_t>(length));
      return point;
    }
    Advance(1);
    const char kind = Peek();
    if (at_ < text_.size()) Advance(1);
    constexpr std::string_view kNames = "nrt\\\"[]^-", kMeant = "\n\r\t\\\"[]^-";
    if (const size_t i = kNames.find(kind); kind != '\0' && i != std::string_view::npos)
      return static_cast<uint32_t>(kMeant[i]);
    const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits == 0)
      return ErrorAt(place, "there is no such escape; \\n \\r \\t \\\\ \\\" \\[ \\] \\^ \\- \\x41 \\u0041 \\U00000041");
    uint64_t point = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = HexDigit(Peek());
      if (digit < 0) return ErrorAt(here_, absl::StrFormat("\\%c has %d hexadecimal digits", kind, digits));
      point = point << 4 | static_cast<uint64_t>(digit);
      Advance(1);
    }
    if (point > kLastCodePoint || IsSurrogate(static_cast<uint32_t>(point)))
      return ErrorAt(place, "that is no character of Unicode");
    return static_cast<uint32_t>(point);
  }

  StatusOr<Expression> Literal() {
    const Place place = here_;
    Advance(1);
    Expression literal = {.kind = Expression::Kind::kLiteral};
    while (!Take("\"")) {
      if (at_ == text_.size() || Peek() == '\n') return ErrorAt(place, "the text in quotes does not end");
      QUERN_ASSIGN(const uint32_t point, Character());
      literal.literal += Encode(point);
    }
    return literal;
  }

  StatusOr<Expression> Class() {
    const Place place = here_;
    Advance(1);
    Expression set = {.kind = Expression::Kind::kChars};
    const bool negated = Take("^");
    while (!Take("]")) {
      if (at_ == text_.size() || Peek() == '\n') return ErrorAt(place, "the [ lacks its ]");
      const Place begin = here_;
      QUERN_ASSIGN(const uint32_t first, Character());
      uint32_t last = first;
      if (Peek() == '-' && Peek(1) != ']') {
        Advance(1);
        if (at_ == text_.size() || Peek() == '\n') return ErrorAt(place, "the [ lacks its ]");
        QUERN_ASSIGN(last, Character());
        if (last < first) return ErrorAt(begin, "the range ends before it begins");
      }
      set.chars.emplace_back(first, last);
    }
    set.chars = Normalised(std::move(set.chars));
    if (negated) set.chars = Complement(set.chars);
    if (set.chars.empty()) return ErrorAt(place, "no character is in the class");
    return set;
  }

  std::string_view text_;
  size_t at_ = 0;
  Place here_;
  Syntax syntax_;
  std::vector<bool> defined_;
  std::map<std::string, int> rules_;
};

}  // namespace

Status ErrorAt(Place place, std::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrFormat("the grammar, %d:%d: %s", place.line, place.column, std::string(message)));
}

StatusOr<Syntax> ParseSyntax(std::string_view text) { return Parser(text).Run(); }

}  // namespace quern::grammar
