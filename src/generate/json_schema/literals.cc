// Parts of grammars that know of no schema: literals, repetitions, ranges of integers.
#include <algorithm>

#include "generate/json_schema/writer.h"

namespace quern::json_schema {
namespace {

std::string Digits(char first, char last) {
  return first == last ? absl::StrFormat("\"%c\"", first) : absl::StrFormat("[%c-%c]", first, last);
}

// Numbers of as many digits as `least` and `most` have, from the one to the other.
std::string SameLength(const std::string& least, const std::string& most) {
  if (least.empty()) return "\"\"";
  const size_t size = least.size();
  if (least == std::string(size, '0') && most == std::string(size, '9'))
    return absl::StrFormat("[0-9]{%d}", static_cast<int>(size));
  const std::string low = least.substr(1), high = most.substr(1);
  const std::string zeros(size - 1, '0'), nines(size - 1, '9');
  if (least[0] == most[0]) return Digits(least[0], least[0]) + " " + SameLength(low, high);
  char first = least[0], last = most[0];
  std::string before, behind;
  if (low != zeros) before = Digits(first, first) + " " + SameLength(low, nines) + " | ", ++first;
  if (high != nines) behind = " | " + Digits(last, last) + " " + SameLength(zeros, high), --last;
  std::string middle = first <= last ? Digits(first, last) + " " + SameLength(zeros, nines) : "";
  if (middle.empty()) before.resize(before.size() - 3);  // no " | " before what there is not
  return "(" + before + middle + behind + ")";
}

std::string NotNegative(int64_t least, int64_t most) {
  std::string result;
  while (true) {
    const std::string low = std::to_string(least);
    int64_t longest = 9;  // the largest number with as many digits
    for (size_t i = 1; i < low.size(); ++i) longest = longest * 10 + 9;
    result += SameLength(low, std::to_string(std::min(most, longest)));
    if (most <= longest) return result;
    result += " | ";
    least = longest + 1;
  }
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < 32)
      result += absl::StrFormat("\\x%02X", c);
    else
      result += c;
  }
  return result + "\"";
}

std::string LiteralOf(const Json& value) { return Quoted(value.dump()); }

std::string Times(const std::string& part, int64_t least, int64_t most) {
  if (least == 0 && most < 0) return part + "*";
  if (least == 0 && most == 1) return part + "?";
  if (least == 1 && most == 1) return part;
  if (most < 0) return absl::StrFormat("%s{%d,}", part, least);
  return most == 0 ? "\"\"" : absl::StrFormat("%s{%d,%d}", part, least, most);
}

std::string IntegersBetween(int64_t least, int64_t most) {
  std::string result = "(";
  if (least < 0) result += "\"-\" (" + NotNegative(std::max<int64_t>(1, -most), -least) + ")";
  if (least < 0 && most >= 0) result += " | ";
  if (most >= 0) result += NotNegative(std::max<int64_t>(0, least), most);
  return result + ")";
}

Status Wrong(const std::string& at, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrFormat("the schema, #%s: %s", at, what));
}

Status NotKnown(const std::string& at, const std::string& what) {
  return absl::UnimplementedError(absl::StrFormat("the schema, #%s: %s", at, what));
}

}  // namespace quern::json_schema
