// A chat template as tokens: text, and what stands in {{ .. }} and {% .. %}; comments are gone.
//
// White space is as transformers sets Jinja up (trim_blocks, lstrip_blocks): the line end behind a block goes, and so
// does the white space before one that begins a line; "-" takes all on its side, "+" leaves all. One line end at the
// end of the template goes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quern::chat {

struct Place {
  int line = 1, column = 1;  // column in bytes
};

// "3:14: message" as an error of the template.
Status ErrorAt(Place place, std::string_view message);

enum class TokenKind {
  kText,
  kPrintBegin,
  kPrintEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kReal,
  kSign,
  kEnd
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // of a string, without quotes and escapes
  Place place;
};

// The tokens, kEnd last. Errors: a block, comment or string that does not end, a character that belongs nowhere.
StatusOr<std::vector<Token>> Tokens(std::string_view source);

}  // namespace quern::chat
