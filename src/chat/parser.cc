// Statements of a template: a recursive descent over the tokens, in which expressions stand.
#include <algorithm>
#include <string>
#include <utility>

#include "chat/expression_parser.h"

namespace quern::chat {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  StatusOr<Block> Run() {
    Block block;
    QUERN_RETURN_IF_ERROR(Statements({}, block));
    return block;
  }

 private:
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

  int loops_ = 0;
  std::string ended_;
};

}  // namespace

StatusOr<Block> Parse(std::string_view source) {
  QUERN_ASSIGN(std::vector<Token> tokens, Tokens(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace quern::chat
