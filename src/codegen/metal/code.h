// A piece of MSL: the text of an expression, how tightly it binds and, of an index, what is known of its value.
//
// GPUs multiply 64-bit numbers slowly, so an i64 whose value provably fits is an `int` in the text ("narrow"); the rest are
// `long`. What provably does not overflow is written with the language's operators, the rest calls helpers that wrap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quern::metal {

// How tightly an expression binds: what needs parentheses where.
enum class Level : uint8_t { kOther, kSum, kProduct, kPrefix, kAtom };

struct Code {
  std::string text;
  Level level = Level::kAtom;
  double low = -0x1p63, high = 0x1p63;  // of an i64; doubles, so that bounds of bounds cannot overflow
  std::optional<int64_t> literal = {};
  bool fixed = false;   // a name whose value does not change
  bool narrow = false;  // of an i64: the text has type int
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
Code Number(int64_t value);
// The greatest power of two that divides a number, as far as anybody asks.
int64_t MultipleOf(int64_t value);
// i64 as `long`, and as `int` where its bounds allow.
Code Wide(const Code& code);
Code Narrowed(const Code& code);

// Of i64s. Literals are folded; 0 and 1 vanish.
Code Sum(const Code& a, const Code& b);
Code Difference(const Code& a, const Code& b);
Code Product(const Code& a, const Code& b);

}  // namespace quern::metal
