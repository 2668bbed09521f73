// A grammar and a text, a zero byte between; or a schema, behind a first byte of 's'. Whatever the bytes are, there is
// an error or an answer, soon; a schema's grammar is one that the parser takes.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "generate/constraint.h"
#include "generate/json_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using quern::grammar::Matcher;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with("s")) {
    const auto rules = quern::json_schema::Grammar(input.substr(1));
    if (rules.ok() && !quern::grammar::Grammar::Parse(*rules).ok()) std::abort();
    return 0;
  }
  const size_t zero = std::min(input.find('\0'), input.size());
  auto grammar = quern::grammar::Grammar::Parse(input.substr(0, zero));
  if (!grammar.ok()) return 0;
  Matcher matcher(std::make_shared<const quern::grammar::Grammar>(*std::move(grammar)));
  auto state = matcher.Begin();
  bool dead = false;
  for (size_t i = zero + 1; state.ok() && i < input.size(); ++i) {
    matcher.BeginToken(*state);
    state = matcher.Next(*state, static_cast<uint8_t>(input[i]));
    if (dead && (!state.ok() || *state != Matcher::kDead)) std::abort();
    dead = state.ok() && *state == Matcher::kDead;
    if (dead && matcher.Accepts(*state)) std::abort();
  }
  return 0;
}
