#include "chat/expression_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <utility>

namespace quern::chat {
namespace {

constexpr int kHighest = 400;

std::vector<ExpressionPtr> Of(ExpressionPtr a, ExpressionPtr b) {
  std::vector<ExpressionPtr> operands;
  operands.push_back(std::move(a));
  operands.push_back(std::move(b));
  return operands;
}

std::vector<ExpressionPtr> Of(ExpressionPtr a) {
  std::vector<ExpressionPtr> operands;
  operands.push_back(std::move(a));
  return operands;
}

}  // namespace

ExpressionPtr ExpressionParser::Make(Expression expression) {
  const auto higher = [&](const ExpressionPtr& part) {
    if (part != nullptr) expression.height = std::max(expression.height, part->height + 1);
  };
  for (const ExpressionPtr& operand : expression.operands) higher(operand);
  for (const auto& [name, value] : expression.named) higher(value);
  highest_ = std::max(highest_, expression.height);
  return std::make_unique<const Expression>(std::move(expression));
}

Status ExpressionParser::CheckHeight() const {
  return highest_ > kHighest ? Wrong("expressions are nested too deeply") : absl::OkStatus();
}

StatusOr<ExpressionPtr> ExpressionParser::Tuple(bool choices) {
  const Place place = Now().place;
  QUERN_ASSIGN(ExpressionPtr first, choices ? Any() : Or());
  if (!Sign(",")) return first;
  std::vector<ExpressionPtr> items = Of(std::move(first));
  while (TakeSign(",")) {
    if (Now().kind == TokenKind::kPrintEnd || Now().kind == TokenKind::kBlockEnd || Sign(")")) break;
    QUERN_ASSIGN(ExpressionPtr item, choices ? Any() : Or());
    items.push_back(std::move(item));
  }
  return Make({.kind = ExpressionKind::kList, .place = place, .operands = std::move(items)});
}

StatusOr<ExpressionPtr> ExpressionParser::Any() {
  if (++depth_ > kDeepest) return Wrong("expressions are nested too deeply");
  QUERN_ASSIGN(ExpressionPtr result, Or());
  while (Name("if")) {
    const Place place = Next().place;
    QUERN_ASSIGN(ExpressionPtr condition, Or());
    ExpressionPtr otherwise;
    if (TakeName("else")) {
      QUERN_ASSIGN(otherwise, Any());
    }
    std::vector<ExpressionPtr> operands = Of(std::move(condition), std::move(result));
    operands.push_back(std::move(otherwise));
    result = Make({.kind = ExpressionKind::kChoice, .place = place, .operands = std::move(operands)});
    QUERN_RETURN_IF_ERROR(CheckHeight());
  }
  --depth_;
  return result;
}

StatusOr<ExpressionPtr> ExpressionParser::Or() { return Words({"or"}, &ExpressionParser::And); }

StatusOr<ExpressionPtr> ExpressionParser::And() { return Words({"and"}, &ExpressionParser::Not); }

StatusOr<ExpressionPtr> ExpressionParser::Not() {
  if (!Name("not")) return Comparison();
  if (++depth_ > kDeepest) return Wrong("expressions are nested too deeply");
  const Place place = Next().place;
  QUERN_ASSIGN(ExpressionPtr operand, Not());
  --depth_;
  return Make({.kind = ExpressionKind::kUnary, .place = place, .text = "not", .operands = Of(std::move(operand))});
}

StatusOr<ExpressionPtr> ExpressionParser::Words(const std::vector<std::string_view>& words, Level next) {
  return Operators(TokenKind::kName, words, next);
}

StatusOr<ExpressionPtr> ExpressionParser::Operators(TokenKind kind, const std::vector<std::string_view>& texts,
                                                    Level next) {
  QUERN_ASSIGN(ExpressionPtr result, (this->*next)());
  while (Now().kind == kind && std::find(texts.begin(), texts.end(), Now().text) != texts.end()) {
    const Token sign = Next();
    QUERN_ASSIGN(ExpressionPtr right, (this->*next)());
    result = Make({.kind = ExpressionKind::kBinary,
                   .place = sign.place,
                   .text = sign.text,
                   .operands = Of(std::move(result), std::move(right))});
    QUERN_RETURN_IF_ERROR(CheckHeight());
  }
  return result;
}

StatusOr<ExpressionPtr> ExpressionParser::Comparison() {
  QUERN_ASSIGN(ExpressionPtr result, Sum());
  const auto comparison = [&] {
    constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
    if (Now().kind == TokenKind::kSign)
      return std::find(std::begin(kSigns), std::end(kSigns), Now().text) != std::end(kSigns);
    return Name("in") || (Name("not") && tokens_[at_ + 1].kind == TokenKind::kName && tokens_[at_ + 1].text == "in");
  };
  if (!comparison()) return result;
  Token sign = Next();
  if (sign.text == "not") sign.text = "not in", ++at_;
  QUERN_ASSIGN(ExpressionPtr right, Sum());
  if (comparison()) return Wrong("a comparison of a comparison is not supported; \"and\" joins two");
  return Make({.kind = ExpressionKind::kBinary,
               .place = sign.place,
               .text = sign.text,
               .operands = Of(std::move(result), std::move(right))});
}

StatusOr<ExpressionPtr> ExpressionParser::Sum() {
  return Operators(TokenKind::kSign, {"+", "-"}, &ExpressionParser::Concat);
}

StatusOr<ExpressionPtr> ExpressionParser::Concat() {
  return Operators(TokenKind::kSign, {"~"}, &ExpressionParser::Product);
}

StatusOr<ExpressionPtr> ExpressionParser::Product() {
  return Operators(TokenKind::kSign, {"*", "/", "//", "%"}, &ExpressionParser::Power);
}

StatusOr<ExpressionPtr> ExpressionParser::Power() {
  return Operators(TokenKind::kSign, {"**"}, &ExpressionParser::Unary);
}

StatusOr<ExpressionPtr> ExpressionParser::Unary() { return Signed(true); }

StatusOr<ExpressionPtr> ExpressionParser::Signed(bool filters) {
  if (++depth_ > kDeepest) return Wrong("expressions are nested too deeply");
  ExpressionPtr result;
  if (Sign("-") || Sign("+")) {
    const Token sign = Next();
    QUERN_ASSIGN(ExpressionPtr operand, Signed(false));
    result = Make(
        {.kind = ExpressionKind::kUnary, .place = sign.place, .text = sign.text, .operands = Of(std::move(operand))});
  } else {
    QUERN_ASSIGN(result, Primary());
  }
  QUERN_ASSIGN(result, Postfix(std::move(result)));
  if (filters) {
    QUERN_ASSIGN(result, Filters(std::move(result)));
  }
  --depth_;
  return result;
}

StatusOr<ExpressionPtr> ExpressionParser::Primary() {
  const Token token = Now();
  const auto literal = [&](Value value) {
    return Make({.kind = ExpressionKind::kLiteral, .place = token.place, .value = std::move(value)});
  };
  if (token.kind == TokenKind::kString) {
    std::string text;
    while (Now().kind == TokenKind::kString) text += Next().text;  // neighbours are one
    return literal(std::move(text));
  }
  if (token.kind == TokenKind::kInteger) {
    int64_t value = 0;
    const char* const end = token.text.data() + token.text.size();
    if (std::from_chars(token.text.data(), end, value).ec != std::errc()) return Wrong("a number of more than 64 bits");
    ++at_;
    return literal(value);
  }
  if (token.kind == TokenKind::kReal) return ++at_, literal(std::strtod(token.text.c_str(), nullptr));
  if (token.kind == TokenKind::kName) {
    ++at_;
    if (token.text == "true" || token.text == "True") return literal(true);
    if (token.text == "false" || token.text == "False") return literal(false);
    if (token.text == "none" || token.text == "None") return literal(None{});
    return Make({.kind = ExpressionKind::kName, .place = token.place, .text = token.text});
  }
  if (TakeSign("(")) {
    if (TakeSign(")")) return Make({.kind = ExpressionKind::kList, .place = token.place});
    QUERN_ASSIGN(ExpressionPtr inner, Tuple());
    QUERN_RETURN_IF_ERROR(ExpectSign(")"));
    return inner;
  }
  if (TakeSign("[")) {
    Expression list{.kind = ExpressionKind::kList, .place = token.place};
    while (!TakeSign("]")) {
      if (!list.operands.empty()) QUERN_RETURN_IF_ERROR(ExpectSign(","));
      if (TakeSign("]")) break;
      QUERN_ASSIGN(ExpressionPtr item, Any());
      list.operands.push_back(std::move(item));
    }
    return Make(std::move(list));
  }
  if (TakeSign("{")) {
    Expression dict{.kind = ExpressionKind::kDict, .place = token.place};
    while (!TakeSign("}")) {
      if (!dict.operands.empty()) QUERN_RETURN_IF_ERROR(ExpectSign(","));
      if (TakeSign("}")) break;
      QUERN_ASSIGN(ExpressionPtr key, Any());
      QUERN_RETURN_IF_ERROR(ExpectSign(":"));
      QUERN_ASSIGN(ExpressionPtr value, Any());
      dict.operands.push_back(std::move(key));
      dict.operands.push_back(std::move(value));
    }
    return Make(std::move(dict));
  }
  return Expected("an expression");
}

StatusOr<ExpressionPtr> ExpressionParser::Postfix(ExpressionPtr object) {
  while (true) {
    QUERN_RETURN_IF_ERROR(CheckHeight());
    const Place place = Now().place;
    if (TakeSign(".")) {
      if (Now().kind == TokenKind::kInteger) {
        QUERN_ASSIGN(ExpressionPtr index, Primary());
        object =
            Make({.kind = ExpressionKind::kItem, .place = place, .operands = Of(std::move(object), std::move(index))});
        continue;
      }
      QUERN_ASSIGN(std::string name, ExpectName());
      object = Make({.kind = ExpressionKind::kAttribute,
                     .place = place,
                     .text = std::move(name),
                     .operands = Of(std::move(object))});
    } else if (TakeSign("[")) {
      QUERN_ASSIGN(object, Subscript(std::move(object), place));
    } else if (Sign("(")) {
      Expression call{.kind = ExpressionKind::kCall, .place = place, .operands = Of(std::move(object))};
      QUERN_RETURN_IF_ERROR(Arguments(call));
      object = Make(std::move(call));
    } else {
      return object;
    }
  }
}

StatusOr<ExpressionPtr> ExpressionParser::Subscript(ExpressionPtr object, Place place) {
  Expression result{.kind = ExpressionKind::kItem, .place = place, .operands = Of(std::move(object))};
  for (int part = 0; part < 3; ++part) {
    ExpressionPtr bound;
    if (!Sign(":") && !Sign("]")) {
      QUERN_ASSIGN(bound, Any());
    }
    result.operands.push_back(std::move(bound));
    if (!TakeSign(":")) break;
    result.kind = ExpressionKind::kSlice;
  }
  if (result.kind == ExpressionKind::kItem && result.operands[1] == nullptr) return Expected("an index");
  if (result.kind == ExpressionKind::kSlice) result.operands.resize(4);
  QUERN_RETURN_IF_ERROR(ExpectSign("]"));
  return Make(std::move(result));
}

Status ExpressionParser::Arguments(Expression& call) {
  QUERN_RETURN_IF_ERROR(ExpectSign("("));
  for (bool first = true; !TakeSign(")"); first = false) {
    if (!first) QUERN_RETURN_IF_ERROR(ExpectSign(","));
    if (TakeSign(")")) break;
    if (Now().kind == TokenKind::kName && tokens_[at_ + 1].kind == TokenKind::kSign && tokens_[at_ + 1].text == "=") {
      const std::string name = Next().text;
      ++at_;
      QUERN_ASSIGN(ExpressionPtr value, Any());
      call.named.emplace_back(name, std::move(value));
      continue;
    }
    if (!call.named.empty()) return Wrong("an argument without a name follows one with");
    const Token token = Now();
    const bool spread = TakeSign("*");
    QUERN_ASSIGN(ExpressionPtr value, Any());
    if (spread) {
      value =
          Make({.kind = ExpressionKind::kUnary, .place = token.place, .text = "*", .operands = Of(std::move(value))});
    }
    call.operands.push_back(std::move(value));
  }
  return absl::OkStatus();
}

StatusOr<ExpressionPtr> ExpressionParser::Filters(ExpressionPtr object) {
  const bool block = object == nullptr;
  for (bool first = block;; first = false) {
    QUERN_RETURN_IF_ERROR(CheckHeight());
    const Place place = Now().place;
    if (first || Sign("|")) {
      ++at_;
      Expression filter{.kind = ExpressionKind::kFilter, .place = place};
      QUERN_ASSIGN(filter.text, ExpectName());
      filter.operands = Of(std::move(object));
      if (Sign("(")) QUERN_RETURN_IF_ERROR(Arguments(filter));
      object = Make(std::move(filter));
    } else if (!block && TakeName("is")) {
      const bool negated = TakeName("not");
      Expression test{.kind = ExpressionKind::kTest, .place = place};
      if (Now().kind != TokenKind::kName && !Sign("==")) return Expected("the name of a test");
      test.text = Next().text;
      test.operands = Of(std::move(object));
      constexpr std::string_view kNoArgument[] = {"else", "or", "and", "if", "is", "in", "not"};
      if (Sign("(")) {
        QUERN_RETURN_IF_ERROR(Arguments(test));
      } else if (Now().kind == TokenKind::kString || Now().kind == TokenKind::kInteger ||
                 Now().kind == TokenKind::kReal || Sign("[") || Sign("{") ||
                 (Now().kind == TokenKind::kName &&
                  std::find(std::begin(kNoArgument), std::end(kNoArgument), Now().text) == std::end(kNoArgument))) {
        QUERN_ASSIGN(ExpressionPtr argument, Primary());
        QUERN_ASSIGN(argument, Postfix(std::move(argument)));
        test.operands.push_back(std::move(argument));
      }
      object = Make(std::move(test));
      if (negated)
        object =
            Make({.kind = ExpressionKind::kUnary, .place = place, .text = "not", .operands = Of(std::move(object))});
    } else if (!block && Sign("(")) {
      QUERN_ASSIGN(object, Postfix(std::move(object)));
    } else {
      return object;
    }
  }
}

}  // namespace quern::chat
