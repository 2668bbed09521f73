// Kernels, types and names of KIR text, and the entry points; see docs/kir.md for the grammar.
#include "kir/parse.h"

#include <algorithm>

#include "kir/build.h"
#include "kir/parser.h"

namespace quern::kir {
namespace {

constexpr std::string_view kReserved[] = {"kernel", "grid",  "for",  "unroll",   "vec",   "if",       "else", "let",
                                          "var",    "alloc", "tile", "map",      "pack",  "prefetch", "in",   "true",
                                          "false",  "cast",  "bits", "contract", "exact", "decode"};

bool IsReserved(std::string_view name) {
  if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved)) return true;
  if (OpFromName(name) || ReduceOpFromName(name)) return true;
  const std::string_view stem = name.substr(0, 3), suffix = name.substr(std::min<size_t>(3, name.size()));
  return (stem == "inf" || stem == "nan") && (suffix.empty() || DTypeFromName(suffix));
}

std::string Quoted(const Token& token) {
  if (token.kind == TokenKind::kEnd) return "the end of the text";
  return absl::StrFormat("\"%s\"", std::string(token.text.substr(0, 40)));
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Tokens and names

const Token& Parser::Next() {
  const Token& token = Peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::Is(std::string_view text, size_t ahead) const {
  const Token& token = Peek(ahead);
  return (token.kind == TokenKind::kName || token.kind == TokenKind::kPunctuation) && token.text == text;
}

bool Parser::Accept(std::string_view text) {
  if (!Is(text)) return false;
  Next();
  return true;
}

Status Parser::Expect(std::string_view text) {
  return Accept(text) ? absl::OkStatus() : Expected(absl::StrFormat("\"%s\"", std::string(text)));
}

Status Parser::Fail(const Token& token, std::string_view message) {
  return absl::InvalidArgumentError(absl::StrFormat("%d:%d: %s", token.line, token.column, std::string(message)));
}

Status Parser::Expected(std::string_view what) const {
  return Fail(Peek(), absl::StrFormat("expected %s, got %s", std::string(what), Quoted(Peek())));
}

StatusOr<const Token*> Parser::Name(std::string_view what) {
  if (Peek().kind != TokenKind::kName) return Expected(what);
  return &Next();
}

StatusOr<int64_t> Parser::Integer(std::string_view what, int64_t low, int64_t high) {
  const Token& token = Peek();
  const bool plain = token.kind == TokenKind::kInteger && !token.suffix;
  if (!plain || token.integer > static_cast<uint64_t>(high) || token.integer < static_cast<uint64_t>(low)) {
    if (high == INT64_MAX) return Expected(absl::StrFormat("%s (at least %d)", std::string(what), low));
    return Expected(absl::StrFormat("%s (%d to %d)", std::string(what), low, high));
  }
  Next();
  return static_cast<int64_t>(token.integer);
}

Status Parser::DeclareName(const Token& token, Entity entity) {
  if (IsReserved(token.text)) return Fail(token, absl::StrFormat("%s is a reserved word", Quoted(token)));
  if (!names_.emplace(std::string(token.text), std::move(entity)).second) {
    return Fail(token, absl::StrFormat("%s is already declared", Quoted(token)));
  }
  declared_.emplace_back(token.text);
  return absl::OkStatus();
}

Parser::Entity* Parser::Find(std::string_view name) {
  const auto it = names_.find(name);
  return it == names_.end() ? nullptr : &it->second;
}

void Parser::LeaveScope(size_t mark) {
  for (; declared_.size() > mark; declared_.pop_back()) names_.erase(declared_.back());
}

void Parser::Declare(const Scope& scope) {
  for (const auto& [name, dtype] : scope.scalars) names_[name] = Scalar(dtype);
  for (const auto& [name, type] : scope.buffers) names_[name] = {.kind = EntityKind::kBuffer, .type = type};
}

StatusOr<std::vector<const Token*>> Parser::ReadNames(std::string_view what) {
  std::vector<const Token*> names;
  do {
    QUERN_ASSIGN(const Token* name, Name(what));
    names.push_back(name);
  } while (Accept(","));
  return names;
}

// ---------------------------------------------------------------------------------------------------------------------
// Types and kernels

// [-] product (+|- product)*, a product being numbers and symbols joined by *.
StatusOr<Extent> Parser::ReadExtent() {
  constexpr int64_t kMaxCoefficient = int64_t{1} << 53;  // with at most 64 terms no sum overflows
  Extent sum;
  int64_t sign = Accept("-") ? -1 : 1;
  for (int terms = 0; terms < 64; ++terms) {
    int64_t coefficient = 1;
    std::vector<std::string> symbols;
    do {
      if (Peek().kind == TokenKind::kInteger) {
        QUERN_ASSIGN(const int64_t factor, Integer("an extent", 0, kMaxCoefficient));
        if (__builtin_mul_overflow(coefficient, factor, &coefficient) || coefficient > kMaxCoefficient) {
          return Fail(Peek(), "extent out of range");
        }
        continue;
      }
      QUERN_ASSIGN(const Token* name, Name("an extent"));
      if (std::find(symbols.begin(), symbols.end(), name->text) != symbols.end()) {
        return Fail(*name, "an extent has each symbol at most once in a product");
      }
      if (symbols_known_) {
        const Entity* entity = Find(name->text);
        if (entity == nullptr || entity->kind != EntityKind::kSymbol) return Fail(*name, "expected a symbol");
      } else {
        symbol_uses_.emplace_back(name->text, name);
      }
      symbols.emplace_back(name->text);
    } while (symbols.size() < 16 && Accept("*"));
    Extent product(sign * coefficient);
    for (std::string& symbol : symbols) product = product * Extent::Symbol(std::move(symbol));
    sum = sum + product;
    if (!Is("+") && !Is("-")) return sum;
    sign = Next().text == "+" ? 1 : -1;
  }
  return Fail(Peek(), "extent has too many terms");
}

// dtype [dims] @layout
StatusOr<BufferType> Parser::ReadType() {
  BufferType type;
  const Token& token = Peek();
  const std::optional<DType> dtype = DTypeFromName(token.text);
  if (token.kind != TokenKind::kName || !dtype) return Expected("a dtype");
  Next();
  type.dtype = *dtype;
  if (Accept("[")) {
    do {
      if (type.dims.size() == kMaxRank) return Fail(Peek(), "too many dimensions");
      const Token& at = Peek();
      QUERN_ASSIGN(Extent dim, ReadExtent());
      if (dim.is_constant() && dim.constant() < 0) return Fail(at, "negative extent");
      type.dims.push_back(std::move(dim));
    } while (Accept(","));
    QUERN_RETURN_IF_ERROR(Expect("]"));
  }
  if (Accept("@")) {
    const std::optional<Layout> layout = LayoutFromName(Peek().text);
    if (!layout) return Expected("a layout");
    Next();
    type.layout = *layout;
  }
  if (!LayoutAllows(type.layout, type.dtype)) {
    return Fail(token, absl::StrFormat("%s cannot have layout @%s", std::string(quern::Name(type.dtype)),
                                       Row(type.layout).name));
  }
  return type;
}

Status Parser::ReadParams(Kernel& kernel) {
  QUERN_RETURN_IF_ERROR(Expect("("));
  symbols_known_ = false;
  while (!Accept(")")) {
    QUERN_ASSIGN(const auto names, ReadNames("a parameter or \")\""));
    QUERN_RETURN_IF_ERROR(Expect(":"));
    Param param;
    QUERN_ASSIGN(param.type, ReadType());
    bool has_mode = false;
    while (Peek().kind == TokenKind::kName && !Peek().starts_line) {
      const std::string_view word = Peek().text;
      if (!has_mode && (word == "in" || word == "out" || word == "inout")) {
        Next();
        param.mode = word == "in" ? Mode::kIn : word == "out" ? Mode::kOut : Mode::kInOut;
        has_mode = true;
      } else if (Accept("align")) {
        const Token& at = Peek();
        QUERN_ASSIGN(const int64_t align, Integer("an alignment", 1, 4096));
        if ((align & (align - 1)) != 0) return Fail(at, "an alignment is a power of two");
        param.align = static_cast<int>(align);
      } else if (Accept("inplace")) {
        QUERN_ASSIGN(const Token* target, Name("a parameter"));
        param.inplace = target->text;
      } else {
        return Expected("in, out, inout, align or inplace");
      }
    }
    for (const Token* name : names) {
      QUERN_RETURN_IF_ERROR(DeclareName(*name, {.kind = EntityKind::kBuffer, .type = param.type}));
      param.name = name->text;
      kernel.params.push_back(param);
    }
    Accept(",");
  }
  symbols_known_ = true;
  return absl::OkStatus();
}

// sym M in 1..512, N, S = ceil(M / 512)
Status Parser::ReadSymbols(Kernel& kernel) {
  if (Accept("sym")) {
    do {
      QUERN_ASSIGN(const Token* name, Name("a symbol"));
      SymbolDecl symbol;
      if (Accept("=")) {
        QUERN_RETURN_IF_ERROR(Expect("ceil"));
        QUERN_RETURN_IF_ERROR(Expect("("));
        QUERN_ASSIGN(Extent numerator, ReadExtent());
        QUERN_RETURN_IF_ERROR(Expect("/"));
        QUERN_ASSIGN(const int64_t divisor, Integer("a divisor", 1, INT64_MAX));
        QUERN_RETURN_IF_ERROR(Expect(")"));
        symbol = DerivedSymbol("", std::move(numerator), divisor, kernel.symbols);
      } else if (Accept("in")) {
        QUERN_ASSIGN(symbol.range.low, Integer("a lower end", 0, INT64_MAX));
        QUERN_RETURN_IF_ERROR(Expect(".."));
        if (Peek().kind == TokenKind::kInteger) {
          QUERN_ASSIGN(symbol.range.high, Integer("an upper end", symbol.range.low, INT64_MAX));
        }
      }
      symbol.name = name->text;
      QUERN_RETURN_IF_ERROR(DeclareName(*name, Scalar(DType::kI64, EntityKind::kSymbol)));
      kernel.symbols.push_back(std::move(symbol));
    } while (Accept(","));
  }
  if (Accept("where")) {
    do {
      QUERN_ASSIGN(SizeFact fact, ReadExtent());
      QUERN_RETURN_IF_ERROR(Expect(">="));
      QUERN_ASSIGN(const int64_t zero, Integer("0", 0, 0));
      static_cast<void>(zero);
      kernel.facts.push_back(std::move(fact));
    } while (Accept(","));
  }
  for (const auto& [name, token] : symbol_uses_) {
    const Entity* entity = Find(name);
    if (entity == nullptr || entity->kind != EntityKind::kSymbol) {
      return Fail(*token, absl::StrFormat("unknown symbol \"%s\"", name));
    }
  }
  for (const Param& param : kernel.params) {
    const bool known = std::any_of(kernel.params.begin(), kernel.params.end(),
                                   [&](const Param& other) { return other.name == param.inplace; });
    if (!param.inplace.empty() && !known) {
      return Fail(Peek(), absl::StrFormat("inplace of %s: unknown parameter \"%s\"", param.name, param.inplace));
    }
  }
  return absl::OkStatus();
}

// grid i in a..b by c, j in d..e [seq] { body }
Status Parser::ReadGrid(Kernel& kernel) {
  QUERN_RETURN_IF_ERROR(Expect("grid"));
  std::vector<const Token*> indices;
  do {
    if (indices.size() == 3) return Fail(Peek(), "a grid has at most three dimensions");
    GridDim dim;
    QUERN_ASSIGN(const Token* index, Name("an index"));
    indices.push_back(index);
    dim.index = index->text;
    QUERN_RETURN_IF_ERROR(Expect("in"));
    QUERN_ASSIGN(dim.low, ReadAs(DType::kI64));
    QUERN_RETURN_IF_ERROR(Expect(".."));
    QUERN_ASSIGN(dim.high, ReadAs(DType::kI64));
    if (Accept("by")) {
      QUERN_ASSIGN(dim.step, Integer("a step", 1, INT64_MAX));
    }
    kernel.grid.push_back(std::move(dim));
  } while (Accept(","));
  kernel.sequential = Accept("seq");
  for (const Token* index : indices) QUERN_RETURN_IF_ERROR(DeclareName(*index, Scalar(DType::kI64)));
  QUERN_ASSIGN(kernel.body, Braced(nullptr));
  return absl::OkStatus();
}

// @[text], if it is next: its row in the kernel's table, else -1.
StatusOr<int> Parser::ReadOrigin() {
  if (Peek().kind != TokenKind::kOrigin) return -1;
  const std::string& text = Next().origin;
  const auto it = std::find(origins_.begin(), origins_.end(), text);
  if (it == origins_.end()) {
    origins_.push_back(text);
    return static_cast<int>(origins_.size()) - 1;
  }
  return static_cast<int>(it - origins_.begin());
}

// { statements }; an origin right after { belongs to the statement that has the block.
StatusOr<Block> Parser::Braced(int* origin) {
  Nesting nesting(depth_);
  if (depth_ > kMaxDepth) return Fail(Peek(), "blocks nested too deeply");
  QUERN_RETURN_IF_ERROR(Expect("{"));
  if (origin != nullptr) {
    QUERN_ASSIGN(*origin, ReadOrigin());
  }
  const size_t mark = declared_.size();
  QUERN_ASSIGN(Block body, Statements());
  LeaveScope(mark);
  QUERN_RETURN_IF_ERROR(Expect("}"));
  return body;
}

StatusOr<Kernel> Parser::OneKernel() {
  names_.clear();
  declared_.clear();
  origins_.clear();
  symbol_uses_.clear();
  Kernel kernel;
  QUERN_RETURN_IF_ERROR(Expect("kernel"));
  QUERN_ASSIGN(const Token* name, Name("the kernel's name"));
  kernel.name = name->text;
  QUERN_RETURN_IF_ERROR(ReadParams(kernel));
  QUERN_RETURN_IF_ERROR(ReadSymbols(kernel));
  QUERN_RETURN_IF_ERROR(Expect("{"));
  QUERN_RETURN_IF_ERROR(ReadGrid(kernel));
  QUERN_RETURN_IF_ERROR(Expect("}"));
  kernel.origins = std::move(origins_);
  return kernel;
}

StatusOr<std::vector<Kernel>> ParseKernels(std::string_view text) {
  QUERN_ASSIGN(std::vector<Token> tokens, Lex(text));
  const std::unique_ptr<Parser> parser = MakeParser(std::move(tokens));
  std::vector<Kernel> kernels;
  while (!parser->AtEnd()) {
    QUERN_ASSIGN(Kernel kernel, parser->OneKernel());
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

StatusOr<Kernel> ParseKernel(std::string_view text) {
  QUERN_ASSIGN(std::vector<Token> tokens, Lex(text));
  const std::unique_ptr<Parser> parser = MakeParser(std::move(tokens));
  QUERN_ASSIGN(Kernel kernel, parser->OneKernel());
  QUERN_RETURN_IF_ERROR(parser->ExpectEnd());
  return kernel;
}

StatusOr<ExprRef> ParseExpr(std::string_view text, const Scope& scope) {
  QUERN_ASSIGN(std::vector<Token> tokens, Lex(text));
  const std::unique_ptr<Parser> parser = MakeParser(std::move(tokens));
  parser->Declare(scope);
  QUERN_ASSIGN(ExprRef expr, parser->AnyExpr());
  QUERN_RETURN_IF_ERROR(parser->ExpectEnd());
  return expr;
}

StatusOr<Block> ParseStatements(std::string_view text, const Scope& scope) {
  QUERN_ASSIGN(std::vector<Token> tokens, Lex(text));
  const std::unique_ptr<Parser> parser = MakeParser(std::move(tokens));
  parser->Declare(scope);
  QUERN_ASSIGN(Block block, parser->Statements());
  QUERN_RETURN_IF_ERROR(parser->ExpectEnd());
  return block;
}

}  // namespace quern::kir
