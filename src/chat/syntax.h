// A parsed chat template: expressions and statements, as data.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/lexer.h"
#include "chat/value.h"

namespace quern::chat {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

enum class ExpressionKind {
  kLiteral,    // value
  kName,       // text
  kList,       // operands; also of a tuple
  kDict,       // keys and values in turn
  kAttribute,  // operands[0].text
  kItem,       // operands[0][operands[1]]
  kSlice,      // operands[0][operands[1]:operands[2]:operands[3]], null where left out
  kCall,       // operands[0](operands[1..], named)
  kFilter,     // operands[0] | text(operands[1..], named)
  kTest,       // operands[0] is text(operands[1..])
  kUnary,      // text: "-", "+", "not"; in a call "*", as many arguments as a list has items
  kBinary,     // text: an operator, "and", "or", "in", "not in"
  kChoice,     // operands[1] if operands[0] else operands[2], which may be null
};

struct Expression {
  ExpressionKind kind;
  Place place;
  std::string text = {};
  Value value = {};
  std::vector<ExpressionPtr> operands = {};
  std::vector<std::pair<std::string, ExpressionPtr>> named = {};
  int height = 1;  // of the tree, at most 400: whoever walks it has stack enough
};

struct Statement;
using Block = std::vector<Statement>;

enum class StatementKind {
  kText,
  kPrint,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kBreak,
  kContinue
};

struct Statement {
  StatementKind kind;
  Place place;
  std::string text = {};                     // of text; the name of a macro
  std::vector<std::string> names = {};       // targets of for and set; parameters of a macro
  ExpressionPtr object = {};                 // of `set object.name`
  ExpressionPtr expression = {};             // printed, assigned, iterated over, tested; a chain of filters of a block
  ExpressionPtr condition = {};              // of for .. if
  std::vector<ExpressionPtr> defaults = {};  // of a macro's parameters, the last ones
  // An if has (condition, block) in turn, and the block of else.
  std::vector<std::pair<ExpressionPtr, Block>> branches = {};
  Block body = {}, otherwise = {};
};

struct Macro {
  const Statement* statement;  // in the template
};

// Errors: what the lexer finds; anything that is no template, with its place; nesting that is too deep.
StatusOr<Block> Parse(std::string_view source);

}  // namespace quern::chat
