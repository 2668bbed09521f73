// Texts and numbers of schemas, and the rules that all of them share.
#include <cmath>

#include "generate/json_schema/writer.h"

namespace quern::json_schema {
namespace {

struct CommonRule {
  const char* name;
  const char* body;
  std::vector<std::string_view> needs;
};

// White space is bounded: a model that has nothing to say would print it for ever. Escapes of surrogates come in pairs,
// and exponents have two digits, so that what reads the text takes it.
const std::vector<CommonRule>& CommonRules() {
  static const auto& kRules = *new std::vector<CommonRule>{
      {"ws", R"(( " " | "\n" [ \t]{0,20} )?)", {}},
      {"hex", "[0-9a-fA-F]", {}},
      {"char",
       R"([^"\\\x00-\x1F\x7F] | "\\" ( ["\\/bfnrt] | "u" ( [0-9a-cefA-CEF] hex{3} | [dD] [0-7] hex{2} )"
       R"( | [dD] [89abAB] hex{2} "\\u" [dD] [c-fC-F] hex{2} ) ))",
       {"hex"}},
      {"string", R"("\"" char* "\"")", {"char"}},
      {"magnitude", R"("0" | [1-9] [0-9]{0,15})", {}},
      {"integer", R"("-"? magnitude)", {"magnitude"}},
      {"unsigned", R"(magnitude ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?)", {"magnitude"}},
      {"number", R"("-"? unsigned)", {"unsigned"}},
      {"boolean", R"("true" | "false")", {}},
      {"null", R"("null")", {}},
      {"member", R"(string ":" ws value)", {"string", "ws", "value"}},
      {"object", R"("{" ws ( member ws ("," ws member ws)* )? "}")", {"member", "ws"}},
      {"array", R"("[" ws ( value ws ("," ws value ws)* )? "]")", {"value", "ws"}},
      {"value",
       "object | array | string | number | boolean | null",
       {"object", "array", "string", "number", "boolean", "null"}},
  };
  return kRules;
}

}  // namespace

std::string Writer::Common(const std::string& name) {
  if (!common_.emplace(name, true).second) return name;
  for (const CommonRule& rule : CommonRules()) {
    if (rule.name != name) continue;
    for (const std::string_view need : rule.needs) Common(std::string(need));
    rules_ += absl::StrFormat("%s ::= %s\n", rule.name, rule.body);
  }
  return name;
}

StatusOr<std::string> Writer::String(const Place& place) {
  QUERN_ASSIGN(const int64_t least, Count(place, "minLength", 0));
  QUERN_ASSIGN(const int64_t most, Count(place, "maxLength", -1));
  if (most >= 0 && most < least) return Wrong(place.at, "maxLength is less than minLength");
  if (least == 0 && most < 0) return Common("string");
  return Define(R"("\"" )" + Times(Common("char"), least, most) + R"( "\"")");
}

StatusOr<std::string> Writer::Number(const Place& place, bool integer) {
  int64_t least = -kMostInteger, most = kMostInteger;
  bool bounded = false;
  constexpr const char* kBounds[] = {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"};
  for (int i = 0; i < 4; ++i) {
    const auto found = place.schema.find(kBounds[i]);
    if (found == place.schema.end()) continue;
    if (!found->is_number()) return Wrong(place.at, absl::StrFormat("%s is no number", kBounds[i]));
    const double bound = found->get<double>();
    if (!integer && (i != 0 || bound != 0))
      return NotKnown(place.at,
                      absl::StrFormat("%s of numbers that are not integers is not taken, but minimum 0", kBounds[i]));
    bounded = true;
    const bool lower = i < 2, exclusive = (i & 1) != 0;
    const double whole = lower ? (exclusive ? std::floor(bound) + 1 : std::ceil(bound))
                               : (exclusive ? std::ceil(bound) - 1 : std::floor(bound));
    // Beyond 2^53 a double is not what was written; beyond 16 digits nothing is generated anyway.
    if (std::abs(bound) > 0x1p53) {
      if (lower == (bound > 0)) return NotKnown(place.at, absl::StrFormat("%s has more than 16 digits", kBounds[i]));
      continue;
    }
    if (lower)
      least = std::max(least, static_cast<int64_t>(whole));
    else
      most = std::min(most, static_cast<int64_t>(whole));
  }
  if (!bounded) return Common(integer ? "integer" : "number");
  if (!integer) return Common("unsigned");
  if (least > most) return Wrong(place.at, "no integer is within its bounds");
  return Define(IntegersBetween(least, most));
}

}  // namespace quern::json_schema
