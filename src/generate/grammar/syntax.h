// A grammar's text as a tree: what the parser makes, before it is an automaton (grammar.h).
//
//   root ::= "[" item ("," item)* "]"       Rule{"root", kSequence{kLiteral, kRule, kRepeat{kSequence..}, kLiteral}}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "generate/grammar/code_points.h"

namespace quern::grammar {

struct Place {
  int line = 1, column = 1;  // column in bytes
};
// "the grammar, 3:14: message".
Status ErrorAt(Place place, std::string_view message);

struct Expression {
  enum class Kind { kLiteral, kChars, kRule, kSequence, kAlternatives, kRepeat };
  Kind kind = Kind::kSequence;
  std::string literal = {};            // UTF-8
  CodePoints chars = {};               // normalised
  int rule = -1;                       // an index of Syntax::rules
  std::vector<Expression> parts = {};  // one, of kRepeat
  int least = 0, most = -1;            // -1: any number
};

struct Rule {
  std::string name;
  Place place;  // of its definition
  Expression body;
};

struct Syntax {
  std::vector<Rule> rules;
  int root = -1;
};

// Errors, with line and column: what is no grammar, a rule that is defined twice or not at all, no rule called root,
// and more than the limits (grammar.h) allow.
StatusOr<Syntax> ParseSyntax(std::string_view text);

}  // namespace quern::grammar
