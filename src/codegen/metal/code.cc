#include "codegen/metal/code.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quern::metal {
namespace {

constexpr double kIntMax = 2147483647.0;
constexpr int64_t kMostMultiple = 64;

bool Fits(double low, double high) { return low >= -kIntMax && high <= kIntMax; }

// a SYMBOL b with what is known of its value, computed in 64 bits where 32 might not do.
Code Arithmetic(const char* symbol, Level level, const Code& a, const Code& b, double low, double high, int64_t multiple) {
  const bool widen = a.narrow && b.narrow && !Fits(low, high);
  Code code = Infix(symbol, level, widen ? Wide(a) : a, b);
  code.multiple = multiple;
  return Bounded(std::move(code), low, high);
}

}  // namespace

std::string Wrapped(const Code& code, Level level) {
  return code.level >= level ? code.text : absl::StrCat("(", code.text, ")");
}

std::string CallText(const std::string& name, const std::vector<std::string>& args) {
  return absl::StrCat(name, "(", absl::StrJoin(args, ", "), ")");
}

Code Bounded(Code code, double low, double high) {
  code.low = low;
  code.high = high;
  return code;
}

Code Infix(const char* symbol, Level level, const Code& a, const Code& b) {
  // Comparisons and bitwise operators nest in parentheses only: their precedence surprises.
  const Level left = level == Level::kOther ? Level::kSum : level;
  const Level right = level == Level::kOther ? Level::kSum : static_cast<Level>(static_cast<int>(level) + 1);
  Code code{absl::StrCat(Wrapped(a, left), " ", symbol, " ", Wrapped(b, right)), level};
  code.narrow = a.narrow && b.narrow;
  return code.narrow ? Bounded(std::move(code), -kIntMax - 1, kIntMax) : code;
}

Code Conditional(const Code& condition, const Code& yes, const Code& no) {
  Code code{absl::StrCat(Wrapped(condition, Level::kSum), " ? ", Wrapped(yes, Level::kSum), " : ", Wrapped(no, Level::kSum)),
            Level::kOther, std::min(yes.low, no.low), std::max(yes.high, no.high)};
  code.narrow = yes.narrow && no.narrow;
  return code;
}

Code Number(int64_t value) {
  const auto real = static_cast<double>(value);
  Code code{absl::StrCat(value), value < 0 ? Level::kPrefix : Level::kAtom, real, real, value, true};
  code.narrow = Fits(real, real);
  code.multiple = MultipleOf(value);
  if (!code.narrow) code.text += "L";
  if (value == INT64_MIN) code.text = "(-9223372036854775807L - 1)", code.level = Level::kAtom;
  return code;
}

int64_t MultipleOf(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  return value == 0 ? kMostMultiple : static_cast<int64_t>(std::min<uint64_t>(bits & (0 - bits), kMostMultiple));
}

Code Wide(const Code& code) {
  if (!code.narrow) return code;
  Code wide = Bounded({absl::StrCat("long(", code.text, ")")}, code.low, code.high);
  wide.literal = code.literal;
  wide.multiple = code.multiple;
  return wide;
}

Code Narrowed(const Code& code) {
  if (code.narrow || !Fits(code.low, code.high)) return code;
  Code narrow = Bounded({absl::StrCat("int(", code.text, ")")}, code.low, code.high);
  narrow.narrow = true;
  narrow.multiple = code.multiple;
  return narrow;
}

Code Sum(const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(*a.literal + *b.literal);
  if (a.literal == 0 || b.literal == 0) return a.literal == 0 ? b : a;
  return Arithmetic("+", Level::kSum, a, b, a.low + b.low, a.high + b.high, std::min(a.multiple, b.multiple));
}

Code Difference(const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(*a.literal - *b.literal);
  if (b.literal == 0) return a;
  return Arithmetic("-", Level::kSum, a, b, a.low - b.high, a.high - b.low, std::min(a.multiple, b.multiple));
}

Code Product(const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(*a.literal * *b.literal);
  if (a.literal == 0 || b.literal == 0) return Number(0);
  if (a.literal == 1 || b.literal == 1) return a.literal == 1 ? b : a;
  const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return Arithmetic("*", Level::kProduct, a, b, low, high, std::min(a.multiple * b.multiple, kMostMultiple));
}

}  // namespace quern::metal
