// The tokens of a template, as a parser walks over them: what is next, taking it, errors that say what was expected.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "chat/lexer.h"

namespace quern::chat {

class TokenCursor {
 public:
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Now() const { return tokens_[at_]; }
  const Token& Next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool Is(TokenKind kind, std::string_view text) const { return Now().kind == kind && Now().text == text; }
  bool Sign(std::string_view text) const { return Is(TokenKind::kSign, text); }
  bool Name(std::string_view text) const { return Is(TokenKind::kName, text); }
  bool TakeSign(std::string_view text) { return Sign(text) && (++at_, true); }
  bool TakeName(std::string_view text) { return Name(text) && (++at_, true); }
  Status Wrong(std::string_view what) const { return ErrorAt(Now().place, what); }
  static std::string Shown(const Token& token) {
    constexpr const char* kNames[] = {"text",
                                      "an output",
                                      "\"}}\"",
                                      "a block",
                                      "\"%}\"",
                                      "",
                                      "a string",
                                      "a number",
                                      "a number",
                                      "",
                                      "the end of the template"};
    const char* const name = kNames[static_cast<int>(token.kind)];
    return *name == 0 ? '"' + token.text + '"' : name;
  }
  Status Expected(std::string_view what) const {
    return Wrong(absl::StrFormat("%s expected, not %s", std::string(what), Shown(Now())));
  }
  Status ExpectSign(std::string_view text) {
    return TakeSign(text) ? absl::OkStatus() : Expected('"' + std::string(text) + '"');
  }
  Status ExpectBlockEnd() {
    if (Now().kind != TokenKind::kBlockEnd) return Expected("\"%}\"");
    ++at_;
    return absl::OkStatus();
  }
  StatusOr<std::string> ExpectName() {
    if (Now().kind != TokenKind::kName) return Expected("a name");
    return Next().text;
  }

 protected:
  std::vector<Token> tokens_;  // the last one is kEnd
  size_t at_ = 0;
};

}  // namespace quern::chat
