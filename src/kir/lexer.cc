#include "kir/lexer.h"

#include <charconv>
#include <iterator>

namespace quern::kir {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

// Longest first, so that the first match is the longest.
constexpr std::string_view kPunctuation[] = {"..", ":=", "+=", "==", "!=", "<=", ">=", "<<", ">>", "(", ")",
                                             "[",  "]",  "{",  "}",  ",",  ":",  ";",  "=",  "+",  "-", "*",
                                             "/",  "%",  "<",  ">",  "&",  "|",  "^",  "!",  "@"};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  StatusOr<std::vector<Token>> Run() {
    while (true) {
      SkipBlanks();
      Token token;
      token.line = line_;
      token.column = static_cast<int>(at_ - line_start_) + 1;
      token.starts_line = starts_line_;
      starts_line_ = false;
      const size_t begin = at_;
      if (at_ == text_.size()) {
        tokens_.push_back(std::move(token));
        return std::move(tokens_);
      }
      QUERN_RETURN_IF_ERROR(ReadToken(token));
      token.text = text_.substr(begin, at_ - begin);
      tokens_.push_back(std::move(token));
    }
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  Status Fail(const Token& token, std::string_view message) const {
    return absl::InvalidArgumentError(absl::StrFormat("%d:%d: %s", token.line, token.column, std::string(message)));
  }

  void SkipBlanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++at_;
        ++line_;
        line_start_ = at_;
        starts_line_ = true;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  Status ReadToken(Token& token) {
    const char c = Peek();
    if (IsNameStart(c)) {
      token.kind = TokenKind::kName;
      while (IsNamePart(Peek())) ++at_;
      return absl::OkStatus();
    }
    if (IsDigit(c)) return ReadNumber(token);
    if (c == '@' && Peek(1) == '[') return ReadOrigin(token);
    for (std::string_view mark : kPunctuation) {
      if (text_.substr(at_, mark.size()) == mark) {
        token.kind = TokenKind::kPunctuation;
        at_ += mark.size();
        return absl::OkStatus();
      }
    }
    return Fail(token, absl::StrFormat("unexpected character (byte %d)", static_cast<unsigned char>(c)));
  }

  Status ReadNumber(Token& token) {
    const size_t begin = at_;
    token.kind = TokenKind::kInteger;
    while (IsDigit(Peek())) ++at_;
    if (Peek() == '.' && IsDigit(Peek(1))) {  // "0..8" is a range, not a fraction
      token.kind = TokenKind::kReal;
      ++at_;
      while (IsDigit(Peek())) ++at_;
    }
    const size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 1 : 0;
    if ((Peek() == 'e' || Peek() == 'E') && IsDigit(Peek(1 + sign))) {
      token.kind = TokenKind::kReal;
      at_ += 1 + sign;
      while (IsDigit(Peek())) ++at_;
    }
    const char* const first = text_.data() + begin;
    const char* const last = text_.data() + at_;
    if (std::from_chars(first, last, token.real).ec != std::errc()) return Fail(token, "number out of range");
    if (token.kind == TokenKind::kInteger && std::from_chars(first, last, token.integer).ec != std::errc()) {
      return Fail(token, "integer needs more than 64 bits");
    }
    if (!IsNameStart(Peek())) return absl::OkStatus();
    const size_t suffix = at_;
    while (IsNamePart(Peek())) ++at_;
    token.suffix = DTypeFromName(text_.substr(suffix, at_ - suffix));
    if (!token.suffix || IsBlock(*token.suffix) || token.suffix == DType::kBool) {
      return Fail(token, absl::StrFormat("expected a scalar dtype after the number, got \"%s\"",
                                         std::string(text_.substr(suffix, at_ - suffix))));
    }
    return absl::OkStatus();
  }

  Status ReadOrigin(Token& token) {
    token.kind = TokenKind::kOrigin;
    at_ += 2;
    while (Peek() != ']') {
      if (at_ == text_.size() || Peek() == '\n') return Fail(token, "@[ without ] on its line");
      char c = text_[at_++];
      if (c == '\\') {
        if (at_ == text_.size() || Peek() == '\n') return Fail(token, "@[ without ] on its line");
        c = text_[at_++];
        if (c == 'n') c = '\n';
      }
      token.origin += c;
    }
    ++at_;
    return absl::OkStatus();
  }

  std::string_view text_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

StatusOr<std::vector<Token>> Lex(std::string_view text) { return Lexer(text).Run(); }

std::string EscapeOrigin(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == ']' || c == '\\') escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace quern::kir
