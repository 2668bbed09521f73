#include "chat/lexer.h"

#include <algorithm>

#include "chat/value.h"

namespace quern::chat {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\f\v";

std::string Normalised(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      i += i + 1 < source.size() && source[i + 1] == '\n';
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(source) {}

  StatusOr<std::vector<Token>> Run() {
    while (at_ < text_.size()) {
      const size_t open = FindOpen();
      const bool end = open == std::string_view::npos;
      std::string_view data = text_.substr(at_, end ? open : open - at_);
      const char kind = end ? 0 : text_[open + 1];
      const char sign = end || open + 2 >= text_.size() ? 0 : text_[open + 2];
      if (!end) data = Stripped(data, kind, sign);
      if (!data.empty()) tokens_.push_back({TokenKind::kText, std::string(data), At(at_)});
      if (end) break;
      at_ = open + 2 + (sign == '-' || (sign == '+' && kind != '{') ? 1 : 0);
      if (kind == '#') {
        QUERN_RETURN_IF_ERROR(Comment(open));
      } else {
        QUERN_ASSIGN(const bool raw, Raw(open, kind));
        if (!raw) QUERN_RETURN_IF_ERROR(Inside(open, kind));
      }
    }
    tokens_.push_back({TokenKind::kEnd, "", At(text_.size())});
    return std::move(tokens_);
  }

 private:
  Place At(size_t offset) {
    // Offsets rise from call to call, nearly always.
    if (offset < counted_) counted_ = 0, place_ = {};
    for (; counted_ < offset; ++counted_) {
      if (text_[counted_] == '\n')
        ++place_.line, place_.column = 1;
      else
        ++place_.column;
    }
    return place_;
  }

  size_t FindOpen() const {
    for (size_t i = at_; i + 1 < text_.size(); ++i) {
      if (text_[i] == '{' && (text_[i + 1] == '{' || text_[i + 1] == '%' || text_[i + 1] == '#')) return i;
    }
    return std::string_view::npos;
  }

  // What a tag leaves of the text before it.
  std::string_view Stripped(std::string_view data, char kind, char sign) const {
    if (sign == '-') {
      const size_t last = data.find_last_not_of(kBlanks);
      return data.substr(0, last == std::string_view::npos ? 0 : last + 1);
    }
    if (kind == '{' || sign == '+') return data;
    const size_t newline = data.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && !line_starting_) return data;
    return data.find_first_not_of(kBlanks, line) == std::string_view::npos ? data.substr(0, line) : data;
  }

  // Behind the end of a tag.
  void Close(size_t length, char sign, bool block) {
    const size_t begin = at_;
    at_ += length;
    if (sign == '-')
      while (at_ < text_.size() && kBlanks.find(text_[at_]) != std::string_view::npos) ++at_;
    else if (block && sign != '+' && at_ < text_.size() && text_[at_] == '\n')
      ++at_;
    line_starting_ = at_ > begin && text_[at_ - 1] == '\n';
  }

  Status Comment(size_t open) {
    const size_t close = text_.find("#}", at_);
    if (close == std::string_view::npos) return ErrorAt(At(open), "the comment does not end");
    const char sign = close > at_ ? text_[close - 1] : 0;
    at_ = close;
    Close(2, sign, true);
    return absl::OkStatus();
  }

  // {% raw %} text {% endraw %}; false when it is another block.
  StatusOr<bool> Raw(size_t open, char kind) {
    if (kind != '%') return false;
    size_t at = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
    if (!text_.substr(at).starts_with("raw")) return false;
    at = std::min(text_.find_first_not_of(kBlanks, at + 3), text_.size());
    const char sign = at < text_.size() && (text_[at] == '-' || text_[at] == '+') ? text_[at] : 0;
    at += sign != 0;
    if (!text_.substr(at).starts_with("%}")) return false;
    at_ = at;
    Close(2, sign, true);
    const size_t begin = at_;
    for (size_t tag = text_.find("{%", begin); tag != std::string_view::npos; tag = text_.find("{%", tag + 2)) {
      const char before = tag + 2 < text_.size() ? text_[tag + 2] : 0;
      size_t inner = tag + 2 + (before == '-' || before == '+');
      inner = std::min(text_.find_first_not_of(kBlanks, inner), text_.size());
      if (!text_.substr(inner).starts_with("endraw")) continue;
      inner = std::min(text_.find_first_not_of(kBlanks, inner + 6), text_.size());
      const char after = inner < text_.size() && (text_[inner] == '-' || text_[inner] == '+') ? text_[inner] : 0;
      inner += after != 0;
      if (!text_.substr(inner).starts_with("%}")) continue;
      const std::string_view data = Stripped(text_.substr(begin, tag - begin), '%', before);
      if (!data.empty()) tokens_.push_back({TokenKind::kText, std::string(data), At(begin)});
      at_ = inner;
      Close(2, after, true);
      return true;
    }
    return ErrorAt(At(open), "the raw block does not end");
  }

  Status Inside(size_t open, char kind) {
    const bool block = kind == '%';
    tokens_.push_back({block ? TokenKind::kBlockBegin : TokenKind::kPrintBegin, "", At(open)});
    const std::string_view close = block ? "%}" : "}}";
    int depth = 0;  // of brackets: their ends come before the tag's
    while (true) {
      at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
      if (at_ == text_.size()) return ErrorAt(At(open), block ? "the block does not end" : "the output does not end");
      const char c = text_[at_];
      const char sign = (c == '-' || (block && c == '+')) && text_.substr(at_ + 1).starts_with(close) ? c : 0;
      if (depth == 0 && (sign != 0 || text_.substr(at_).starts_with(close))) {
        tokens_.push_back({block ? TokenKind::kBlockEnd : TokenKind::kPrintEnd, "", At(at_)});
        Close(close.size() + (sign != 0), sign, block);
        return absl::OkStatus();
      }
      if (c == '(' || c == '[' || c == '{') ++depth;
      if ((c == ')' || c == ']' || c == '}') && depth-- == 0)
        return ErrorAt(At(at_), absl::StrFormat("'%c' closes nothing", c));
      QUERN_RETURN_IF_ERROR(One());
    }
  }

  Status One() {
    const Place place = At(at_);
    const size_t begin = at_;
    const char c = text_[at_];
    if (IsNameStart(c)) {
      while (at_ < text_.size() && (IsNameStart(text_[at_]) || IsDigit(text_[at_]))) ++at_;
      tokens_.push_back({TokenKind::kName, std::string(text_.substr(begin, at_ - begin)), place});
    } else if (IsDigit(c)) {
      const auto digits = [&] {
        while (at_ < text_.size() && (IsDigit(text_[at_]) || text_[at_] == '_')) ++at_;
      };
      digits();
      bool real = false;
      if (at_ + 1 < text_.size() && text_[at_] == '.' && IsDigit(text_[at_ + 1])) real = true, ++at_, digits();
      if (at_ + 1 < text_.size() && (text_[at_] | 0x20) == 'e') {
        const size_t exponent = at_ + 1 + (text_[at_ + 1] == '+' || text_[at_ + 1] == '-');
        if (exponent < text_.size() && IsDigit(text_[exponent])) real = true, at_ = exponent, digits();
      }
      std::string number(text_.substr(begin, at_ - begin));
      std::erase(number, '_');
      tokens_.push_back({real ? TokenKind::kReal : TokenKind::kInteger, number, place});
    } else if (c == '"' || c == '\'') {
      return String(place, c);
    } else {
      constexpr std::string_view kSigns[] = {"==", "!=", "<=", ">=", "//", "**", "+", "-", "*", "/", "%", "~", "<",
                                             ">",  "=",  ".",  ":",  ",",  "|",  "(", ")", "[", "]", "{", "}"};
      for (const std::string_view sign : kSigns) {
        if (!text_.substr(at_).starts_with(sign)) continue;
        at_ += sign.size();
        tokens_.push_back({TokenKind::kSign, std::string(sign), place});
        return absl::OkStatus();
      }
      return ErrorAt(place, absl::StrFormat("the byte 0x%02x belongs nowhere", static_cast<uint8_t>(c)));
    }
    return absl::OkStatus();
  }

  Status String(Place place, char quote) {
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] != '\\' || at_ + 1 == text_.size()) {
        text += text_[at_];
        continue;
      }
      const char c = text_[++at_];
      constexpr std::string_view kNames = "ntrbfva0\\'\"\n", kBytes{"\n\t\r\b\f\v\a\0\\'\"", 11};
      const size_t found = kNames.find(c);
      const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
      char32_t code = 0;
      int read = 0;
      for (; read < digits && at_ + 1 + read < text_.size(); ++read) {
        const char d = text_[at_ + 1 + read], lower = static_cast<char>(d | 0x20);
        if (!IsDigit(d) && !(lower >= 'a' && lower <= 'f')) break;
        code = code * 16 + (IsDigit(d) ? d - '0' : lower - 'a' + 10);
      }
      if (digits > 0 && (read < digits || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)))
        return ErrorAt(At(at_), "an escape that is no character");
      if (digits > 0)
        text += FromCharacters({&code, 1}), at_ += digits;
      else if (found == std::string_view::npos)
        (text += '\\') += c;
      else if (found < kBytes.size())
        text += kBytes[found];  // an escaped line end is nothing
    }
    if (at_ == text_.size()) return ErrorAt(place, "the string does not end");
    ++at_;
    tokens_.push_back({TokenKind::kString, std::move(text), place});
    return absl::OkStatus();
  }

  std::string_view text_;
  size_t at_ = 0, counted_ = 0;
  Place place_;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Status ErrorAt(Place place, std::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrFormat("chat template, %d:%d: %s", place.line, place.column, std::string(message)));
}

StatusOr<std::vector<Token>> Tokens(std::string_view source) {
  const std::string text = Normalised(source);
  return Lexer(text).Run();
}

}  // namespace quern::chat
