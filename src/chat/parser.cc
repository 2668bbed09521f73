// A recursive descent over the tokens, with Jinja's precedences.
#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "chat/syntax.h"

namespace quern::chat {
namespace {

constexpr int kDeepest = 200, kHighest = 400;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  StatusOr<Block> Run() {
    Block block;
    QUERN_RETURN_IF_ERROR(Statements({}, block));
    return block;
  }

 private:
  const Token& Now() const { return tokens_[at_]; }
  const Token& Next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool Is(TokenKind kind, std::string_view text) const { return Now().kind == kind && Now().text == text; }
  bool Sign(std::string_view text) const { return Is(TokenKind::kSign, text); }
  bool Name(std::string_view text) const { return Is(TokenKind::kName, text); }
  bool TakeSign(std::string_view text) { return Sign(text) && (++at_, true); }
  bool TakeName(std::string_view text) { return Name(text) && (++at_, true); }
  Status Wrong(std::string_view what) const { return ErrorAt(Now().place, what); }
  static std::string Shown(const Token& token) {
    constexpr const char* kNames[] = {"text",
                                      "an output",
                                      "\"}}\"",
                                      "a block",
                                      "\"%}\"",
                                      "",
                                      "a string",
                                      "a number",
                                      "a number",
                                      "",
                                      "the end of the template"};
    const char* const name = kNames[static_cast<int>(token.kind)];
    return *name == 0 ? '"' + token.text + '"' : name;
  }
  Status Expected(std::string_view what) const {
    return Wrong(absl::StrFormat("%s expected, not %s", std::string(what), Shown(Now())));
  }
  Status ExpectSign(std::string_view text) {
    return TakeSign(text) ? absl::OkStatus() : Expected('"' + std::string(text) + '"');
  }
  Status ExpectBlockEnd() {
    if (Now().kind != TokenKind::kBlockEnd) return Expected("\"%}\"");
    ++at_;
    return absl::OkStatus();
  }
  StatusOr<std::string> ExpectName() {
    if (Now().kind != TokenKind::kName) return Expected("a name");
    return Next().text;
  }

  // Up to a block that begins with one of `ends`, whose begin and name are taken (which one, by ended_).
  Status Statements(const std::vector<std::string_view>& ends, Block& out) {
    if (++depth_ > kDeepest) return Wrong("blocks are nested too deeply");
    while (true) {
      const Token& token = Now();
      if (token.kind == TokenKind::kEnd) {
        if (ends.empty()) break;
        return Expected("{% " + std::string(ends.back()) + " %}");
      }
      if (token.kind == TokenKind::kText) {
        out.push_back({.kind = StatementKind::kText, .place = token.place, .text = Next().text});
      } else if (token.kind == TokenKind::kPrintBegin) {
        ++at_;
        Statement statement{.kind = StatementKind::kPrint, .place = token.place};
        QUERN_ASSIGN(statement.expression, Tuple());
        if (Now().kind != TokenKind::kPrintEnd) return Expected("\"}}\"");
        ++at_;
        out.push_back(std::move(statement));
      } else {
        ++at_;
        if (Now().kind != TokenKind::kName) return Expected("the name of a block");
        const std::string name = Now().text;
        if (std::find(ends.begin(), ends.end(), name) != ends.end()) {
          ++at_;
          ended_ = name;
          break;
        }
        QUERN_RETURN_IF_ERROR(BlockCalled(name, out));
      }
    }
    --depth_;
    return absl::OkStatus();
  }

  Status BlockCalled(const std::string& name, Block& out) {
    struct Row {
      std::string_view name;
      Status (Parser::*parse)(Statement& statement);
    };
    constexpr Row kRows[] = {{"if", &Parser::If},        {"for", &Parser::For},        {"set", &Parser::Set},
                             {"macro", &Parser::Macro_}, {"filter", &Parser::Filter_}, {"call", &Parser::CallBlock},
                             {"break", &Parser::Jump},   {"continue", &Parser::Jump}};
    if (name == "generation") {  // marks what a model says, for training; its text is text
      ++at_;
      QUERN_RETURN_IF_ERROR(ExpectBlockEnd());
      QUERN_RETURN_IF_ERROR(Statements({"endgeneration"}, out));
      return ExpectBlockEnd();
    }
    for (const Row& row : kRows) {
      if (row.name != name) continue;
      Statement statement{.kind = StatementKind::kText, .place = Now().place};
      ++at_;
      QUERN_RETURN_IF_ERROR((this->*row.parse)(statement));
      out.push_back(std::move(statement));
      return absl::OkStatus();
    }
    return Wrong("a block \"" + name + "\" is not supported, or has no place here");
  }

  Status If(Statement& out) {
    out.kind = StatementKind::kIf;
    for (bool more = true; more;) {
      QUERN_ASSIGN(ExpressionPtr condition, Tuple());
      QUERN_RETURN_IF_ERROR(ExpectBlockEnd());
      out.branches.emplace_back(std::move(condition), Block());
      QUERN_RETURN_IF_ERROR(Statements({"elif", "else", "endif"}, out.branches.back().second));
      more = ended_ == "elif";
    }
    if (ended_ == "else") {
      QUERN_RETURN_IF_ERROR(ExpectBlockEnd());
      QUERN_RETURN_IF_ERROR(Statements({"endif"}, out.otherwise));
    }
    return ExpectBlockEnd();
  }

  Status For(Statement& out) {
    out.kind = StatementKind::kFor;
    QUERN_RETURN_IF_ERROR(Targets(out.names));
    if (!TakeName("in")) return Expected("\"in\"");
    QUERN_ASSIGN(out.expression, Tuple(false));
    if (TakeName("if")) {
      QUERN_ASSIGN(out.condition, Any());
    }
    if (Name("recursive")) return Wrong("recursive loops are not supported");
    QUERN_RETURN_IF_ERROR(ExpectBlockEnd());
    ++loops_;
    QUERN_RETURN_IF_ERROR(Statements({"else", "endfor"}, out.body));
    --loops_;
    if (ended_ == "else") {
      QUERN_RETURN_IF_ERROR(ExpectBlockEnd());
      QUERN_RETURN_IF_ERROR(Statements({"endfor"}, out.otherwise));
    }
    return ExpectBlockEnd();
  }

  Status Targets(std::vector<std::string>& names) {
    const bool bracket = TakeSign("(");
    do {
      QUERN_ASSIGN(std::string name, ExpectName());
      names.push_back(std::move(name));
    } while (TakeSign(","));
    return bracket ? ExpectSign(")") : absl::OkStatus();
  }

  Status Set(Statement& out) {
    out.kind = StatementKind::kSet;
    const Place place = Now().place;
    QUERN_RETURN_IF_ERROR(Targets(out.names));
    if (out.names.size() == 1 && TakeSign(".")) {
      out.object = std::make_unique<const Expression>(
          Expression{.kind = ExpressionKind::kName, .place = place, .text = out.names[0]});
      QUERN_ASSIGN(out.names[0], ExpectName());
    }
    if (TakeSign("=")) {
      QUERN_ASSIGN(out.expression, Tuple());
      return ExpectBlockEnd();
    }
    if (out.names.size() != 1) return Expected("\"=\"");
    out.kind = StatementKind::kSetBlock;
    if (Sign("|")) {
      QUERN_ASSIGN(out.expression, Filters(nullptr));
    }
    QUERN_RETURN_IF_ERROR(ExpectBlockEnd());
    QUERN_RETURN_IF_ERROR(Statements({"endset"}, out.body));
    return ExpectBlockEnd();
  }

  Status Macro_(Statement& out) {
    out.kind = StatementKind::kMacro;
    QUERN_ASSIGN(out.text, ExpectName());
    QUERN_RETURN_IF_ERROR(ExpectSign("("));
    while (!TakeSign(")")) {
      if (!out.names.empty()) QUERN_RETURN_IF_ERROR(ExpectSign(","));
      if (TakeSign(")")) break;
      QUERN_ASSIGN(std::string name, ExpectName());
      out.names.push_back(std::move(name));
      if (TakeSign("=")) {
        QUERN_ASSIGN(ExpressionPtr value, Any());
        out.defaults.push_back(std::move(value));
      } else if (!out.defaults.empty()) {
        return Wrong("a parameter without a default follows one with");
      }
    }
    QUERN_RETURN_IF_ERROR(ExpectBlockEnd());
    const int loops = std::exchange(loops_, 0);
    QUERN_RETURN_IF_ERROR(Statements({"endmacro"}, out.body));
    loops_ = loops;
    if (Now().kind == TokenKind::kName) ++at_;  // its name, again
    return ExpectBlockEnd();
  }

  Status CallBlock(Statement& out) {
    out.kind = StatementKind::kCallBlock;
    if (Sign("(")) return Wrong("a call block with parameters is not supported");
    QUERN_ASSIGN(out.expression, Signed(false));
    if (out.expression->kind != ExpressionKind::kCall) return ErrorAt(out.expression->place, "a call expected");
    QUERN_RETURN_IF_ERROR(ExpectBlockEnd());
    const int loops = std::exchange(loops_, 0);
    QUERN_RETURN_IF_ERROR(Statements({"endcall"}, out.body));
    loops_ = loops;
    return ExpectBlockEnd();
  }

  Status Filter_(Statement& out) {
    out.kind = StatementKind::kFilterBlock;
    --at_;  // the name reads like a "|"
    QUERN_ASSIGN(out.expression, Filters(nullptr));
    QUERN_RETURN_IF_ERROR(ExpectBlockEnd());
    QUERN_RETURN_IF_ERROR(Statements({"endfilter"}, out.body));
    return ExpectBlockEnd();
  }

  Status Jump(Statement& out) {
    out.kind = tokens_[at_ - 1].text == "break" ? StatementKind::kBreak : StatementKind::kContinue;
    if (loops_ == 0) return ErrorAt(out.place, "there is no loop here");
    return ExpectBlockEnd();
  }

  ExpressionPtr Make(Expression expression) {
    const auto higher = [&](const ExpressionPtr& part) {
      if (part != nullptr) expression.height = std::max(expression.height, part->height + 1);
    };
    for (const ExpressionPtr& operand : expression.operands) higher(operand);
    for (const auto& [name, value] : expression.named) higher(value);
    highest_ = std::max(highest_, expression.height);
    return std::make_unique<const Expression>(std::move(expression));
  }
  // Chains of operators grow to the left without the parser going deeper.
  Status CheckHeight() const {
    return highest_ > kHighest ? Wrong("expressions are nested too deeply") : absl::OkStatus();
  }
  static std::vector<ExpressionPtr> Of(ExpressionPtr a, ExpressionPtr b) {
    std::vector<ExpressionPtr> operands;
    operands.push_back(std::move(a));
    operands.push_back(std::move(b));
    return operands;
  }
  static std::vector<ExpressionPtr> Of(ExpressionPtr a) {
    std::vector<ExpressionPtr> operands;
    operands.push_back(std::move(a));
    return operands;
  }

  // One expression, or several with commas, which are a list. `choices`: "if" belongs to it.
  StatusOr<ExpressionPtr> Tuple(bool choices = true) {
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

  StatusOr<ExpressionPtr> Any() {
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

  StatusOr<ExpressionPtr> Or() { return Words({"or"}, &Parser::And); }
  StatusOr<ExpressionPtr> And() { return Words({"and"}, &Parser::Not); }
  StatusOr<ExpressionPtr> Not() {
    if (!Name("not")) return Comparison();
    if (++depth_ > kDeepest) return Wrong("expressions are nested too deeply");
    const Place place = Next().place;
    QUERN_ASSIGN(ExpressionPtr operand, Not());
    --depth_;
    return Make({.kind = ExpressionKind::kUnary, .place = place, .text = "not", .operands = Of(std::move(operand))});
  }

  using Level = StatusOr<ExpressionPtr> (Parser::*)();
  StatusOr<ExpressionPtr> Words(const std::vector<std::string_view>& words, Level next) {
    return Operators(TokenKind::kName, words, next);
  }
  StatusOr<ExpressionPtr> Operators(TokenKind kind, const std::vector<std::string_view>& texts, Level next) {
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

  // a < b == c is (a < b) and (b == c) in Python; templates have one comparison, and more are refused.
  StatusOr<ExpressionPtr> Comparison() {
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

  StatusOr<ExpressionPtr> Sum() { return Operators(TokenKind::kSign, {"+", "-"}, &Parser::Concat); }
  StatusOr<ExpressionPtr> Concat() { return Operators(TokenKind::kSign, {"~"}, &Parser::Product); }
  StatusOr<ExpressionPtr> Product() { return Operators(TokenKind::kSign, {"*", "/", "//", "%"}, &Parser::Power); }
  StatusOr<ExpressionPtr> Power() { return Operators(TokenKind::kSign, {"**"}, &Parser::Unary); }
  StatusOr<ExpressionPtr> Unary() { return Signed(true); }

  StatusOr<ExpressionPtr> Signed(bool filters) {
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

  StatusOr<ExpressionPtr> Primary() {
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
      if (std::from_chars(token.text.data(), end, value).ec != std::errc())
        return Wrong("a number of more than 64 bits");
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

  StatusOr<ExpressionPtr> Postfix(ExpressionPtr object) {
    while (true) {
      QUERN_RETURN_IF_ERROR(CheckHeight());
      const Place place = Now().place;
      if (TakeSign(".")) {
        if (Now().kind == TokenKind::kInteger) {
          QUERN_ASSIGN(ExpressionPtr index, Primary());
          object = Make(
              {.kind = ExpressionKind::kItem, .place = place, .operands = Of(std::move(object), std::move(index))});
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

  StatusOr<ExpressionPtr> Subscript(ExpressionPtr object, Place place) {
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

  // "(a, b, name=c)" behind operands that are there.
  Status Arguments(Expression& call) {
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

  // Filters, tests and calls behind an expression; of a block's chain, whose object is null, filters alone.
  StatusOr<ExpressionPtr> Filters(ExpressionPtr object) {
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

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0, highest_ = 0;
  std::string ended_;
};

}  // namespace

StatusOr<Block> Parse(std::string_view source) {
  QUERN_ASSIGN(std::vector<Token> tokens, Tokens(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace quern::chat
