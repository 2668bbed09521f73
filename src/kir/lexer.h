// Splits KIR text into tokens. Blanks and `#` comments separate tokens; whether a token starts a line is kept, because
// words that modify a declaration ("in", "align") or a tile call (attributes) must stand on its line.
//
//   "x[i] = 0.5f16  @[relu]"  ->  x  [  i  ]  =  0.5(f16)  @[relu]  end
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace quern::kir {

enum class TokenKind : uint8_t { kName, kInteger, kReal, kPunctuation, kOrigin, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;     // as written; of the input
  int line = 1, column = 1;  // of its first byte, from 1
  bool starts_line = false;
  uint64_t integer = 0;         // kInteger
  double real = 0;              // kInteger and kReal
  std::optional<DType> suffix;  // 1i32: i32
  std::string origin;           // kOrigin: the text between @[ and ], without escapes
};

// The tokens of `text`, the last being kEnd. `text` must outlive them. Errors: InvalidArgument with line:column.
StatusOr<std::vector<Token>> Lex(std::string_view text);

// Text for @[...]: `]`, `\` and line ends escaped.
std::string EscapeOrigin(std::string_view text);

}  // namespace quern::kir
