#include "codegen/text/code.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quern::text {
namespace {

constexpr double kIntMax = 2147483647.0;

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
  Code code{
      absl::StrCat(Wrapped(condition, Level::kSum), " ? ", Wrapped(yes, Level::kSum), " : ", Wrapped(no, Level::kSum)),
      Level::kOther, std::min(yes.low, no.low), std::max(yes.high, no.high)};
  code.narrow = yes.narrow && no.narrow;
  return code;
}

bool FitsInt(double low, double high) { return low >= -kIntMax && high <= kIntMax; }

int64_t MultipleOf(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  return value == 0 ? kMostMultiple : static_cast<int64_t>(std::min<uint64_t>(bits & (0 - bits), kMostMultiple));
}

}  // namespace quern::text
