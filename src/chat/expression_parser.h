// Expressions of a template: a recursive descent with Jinja's precedences, over the tokens that statements share.
#pragma once

#include <string_view>
#include <vector>

#include "chat/syntax.h"
#include "chat/token_cursor.h"

namespace quern::chat {

class ExpressionParser : public TokenCursor {
 public:
  using TokenCursor::TokenCursor;

  // One expression, or several with commas, which are a list. `choices`: "if" belongs to it.
  StatusOr<ExpressionPtr> Tuple(bool choices = true);
  StatusOr<ExpressionPtr> Any();
  // One with a sign before it or none, and with its `|` and `is` where these belong to it.
  StatusOr<ExpressionPtr> Signed(bool filters);
  // Filters, tests and calls behind an expression; of a block's chain, whose object is null, filters alone.
  StatusOr<ExpressionPtr> Filters(ExpressionPtr object);

 protected:
  static constexpr int kDeepest = 200;  // of blocks and of what an expression has within it
  int depth_ = 0;

 private:
  using Level = StatusOr<ExpressionPtr> (ExpressionParser::*)();
  ExpressionPtr Make(Expression expression);
  // Chains of operators grow to the left without the parser going deeper.
  Status CheckHeight() const;
  StatusOr<ExpressionPtr> Or();
  StatusOr<ExpressionPtr> And();
  StatusOr<ExpressionPtr> Not();
  StatusOr<ExpressionPtr> Words(const std::vector<std::string_view>& words, Level next);
  StatusOr<ExpressionPtr> Operators(TokenKind kind, const std::vector<std::string_view>& texts, Level next);
  // a < b == c is (a < b) and (b == c) in Python; templates have one comparison, and more are refused.
  StatusOr<ExpressionPtr> Comparison();
  StatusOr<ExpressionPtr> Sum();
  StatusOr<ExpressionPtr> Concat();
  StatusOr<ExpressionPtr> Product();
  StatusOr<ExpressionPtr> Power();
  StatusOr<ExpressionPtr> Unary();
  StatusOr<ExpressionPtr> Primary();
  StatusOr<ExpressionPtr> Postfix(ExpressionPtr object);
  StatusOr<ExpressionPtr> Subscript(ExpressionPtr object, Place place);
  // "(a, b, name=c)" behind operands that are there.
  Status Arguments(Expression& call);

  int highest_ = 0;  // of the trees made so far
};

}  // namespace quern::chat
