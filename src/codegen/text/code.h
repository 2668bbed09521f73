// A piece of text in a language like C: an expression, how tightly it binds and, of an index, what is known of its
// value.
//
//   Infix("*", Level::kProduct, {"a + b", Level::kSum}, {"c"}).text == "(a + b) * c"
//
// What provably does not overflow is written with the language's own operators, the rest calls helpers that wrap. Where
// 64-bit numbers are slow, an i64 whose value provably fits is an `int` in the text ("narrow"); TextEmitter decides
// that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quern::text {

// How tightly an expression binds: what needs parentheses where.
enum class Level : uint8_t { kOther, kSum, kProduct, kPrefix, kAtom };

struct Code {
  std::string text;
  Level level = Level::kAtom;
  double low = -0x1p63, high = 0x1p63;  // of an i64; doubles, so that bounds of bounds cannot overflow
  std::optional<int64_t> literal = {};
  bool fixed = false;    // a name whose value does not change
  bool narrow = false;   // of an i64: the text has type int
  int64_t multiple = 1;  // of an i64: a power of two that divides it
};

// The text, in parentheses where it binds less tightly than `level`.
std::string Wrapped(const Code& code, Level level);
// NAME(a, b)
std::string CallText(const std::string& name, const std::vector<std::string>& args);
Code Bounded(Code code, double low, double high);
// a SYMBOL b; narrow when both are.
Code Infix(const char* symbol, Level level, const Code& a, const Code& b);
Code Conditional(const Code& condition, const Code& yes, const Code& no);

// What an int holds, but for its least value: then negations hold as well.
bool FitsInt(double low, double high);
inline constexpr int64_t kMostMultiple = 64;
// The greatest power of two that divides a number, as far as anybody asks: up to kMostMultiple.
int64_t MultipleOf(int64_t value);

}  // namespace quern::text
