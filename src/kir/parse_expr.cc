// Expressions of KIR text. Operators by precedence climbing over the operator table; see docs/kir.md for the grammar.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kir/build.h"
#include "kir/parser.h"

namespace quern::kir {
namespace {

// inf, nan, or either with a float dtype after it (inff64).
std::optional<std::pair<double, std::optional<DType>>> SpecialLiteral(std::string_view text) {
  if (text.size() < 3) return std::nullopt;
  const std::string_view stem = text.substr(0, 3), suffix = text.substr(3);
  if (stem != "inf" && stem != "nan") return std::nullopt;
  const double value =
      stem == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (suffix.empty()) return {{value, std::nullopt}};
  const std::optional<DType> dtype = DTypeFromName(suffix);
  if (!dtype || !IsFloat(*dtype)) return std::nullopt;
  return {{value, dtype}};
}

}  // namespace

bool Parser::AtLiteral(size_t ahead) const {
  const Token& token = Peek(ahead);
  if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kReal) return true;
  return token.kind == TokenKind::kName && SpecialLiteral(token.text).has_value();
}

StatusOr<Parser::Typed> Parser::Made(ExprRef expr, int depth, const Token& at) {
  if (depth > kMaxDepth) return Fail(at, "expression nested too deeply");
  return Typed{.expr = std::move(expr), .depth = depth};
}

StatusOr<Parser::Typed> Parser::Binary(int min_precedence) {
  QUERN_ASSIGN(Typed left, Unary());
  while (true) {
    const Token& token = Peek();
    if (token.kind != TokenKind::kPunctuation) return left;
    const bool swapped = token.text == ">" || token.text == ">=";
    const std::optional<Op> op = OpFromName(swapped ? (token.text == ">" ? "<" : "<=") : token.text);
    if (!op || Row(*op).precedence < min_precedence) return left;
    Next();
    QUERN_ASSIGN(Typed right, Binary(Row(*op).precedence + 1));
    if (swapped) std::swap(left, right);
    std::vector<Typed> args = {std::move(left), std::move(right)};
    QUERN_ASSIGN(left, Apply(*op, std::move(args), token));
  }
}

StatusOr<Parser::Typed> Parser::Unary() {
  Nesting nesting(depth_);
  if (depth_ > kMaxDepth) return Fail(Peek(), "expression nested too deeply");
  const Token& token = Peek();
  if (Is("-") && AtLiteral(1)) {
    Next();
    return Literal(true);
  }
  if (Is("-") || Is("!")) {
    Next();
    QUERN_ASSIGN(Typed value, Unary());
    std::vector<Typed> args = {std::move(value)};
    return Apply(token.text == "-" ? Op::kNeg : Op::kNot, std::move(args), token);
  }
  return Primary();
}

StatusOr<Parser::Typed> Parser::Literal(bool negative) {
  const Token& token = Next();
  const double sign = negative ? -1 : 1;
  if (token.kind == TokenKind::kName) {
    const auto special = *SpecialLiteral(token.text);
    const DType dtype = special.second.value_or(DType::kF64);
    return Typed{.expr = MakeReal(sign * special.first, dtype), .flexible = !special.second, .real = true};
  }
  // The placeholder keeps both forms; bits of an integer above INT64_MAX look negative while `real` is positive.
  if (negative && token.kind == TokenKind::kInteger && token.integer > uint64_t{1} << 63) {
    return Fail(token, "integer out of range");
  }
  const int64_t bits = static_cast<int64_t>(negative ? 0 - token.integer : token.integer);
  const bool real = token.kind == TokenKind::kReal;
  Expr placeholder{Const{.real = sign * token.real, .integer = bits}, real ? DType::kF64 : DType::kI64};
  Typed literal{.expr = std::make_shared<const Expr>(std::move(placeholder)), .flexible = true, .real = real};
  if (token.suffix) return Convert(std::move(literal), *token.suffix, token);
  return literal;
}

StatusOr<Parser::Typed> Parser::Primary() {
  const Token& token = Peek();
  if (AtLiteral(0)) return Literal(false);
  if (Accept("(")) {
    QUERN_ASSIGN(Typed value, Binary(1));
    QUERN_RETURN_IF_ERROR(Expect(")"));
    return value;
  }
  if (token.kind != TokenKind::kName) return Expected("an expression");
  Next();
  const std::string_view name = token.text;
  if (name == "true" || name == "false") return Typed{.expr = MakeInteger(name == "true", DType::kBool)};
  if (name == "cast" || name == "bits") return ReadConversion(name == "bits");
  if (name == "contract" || name == "exact") return ReadMarked(name == "contract");
  if (const std::optional<ReduceOp> reduce = ReduceOpFromName(name); reduce && !Is("(")) return ReadReduce(*reduce);
  if (const std::optional<Op> op = OpFromName(name)) return ReadCall(*op);
  if (name == "decode") {
    QUERN_RETURN_IF_ERROR(Expect("("));
    QUERN_ASSIGN(const Token* buffer, Name("a buffer"));
    const Entity* entity = Find(buffer->text);
    if (entity == nullptr || entity->kind != EntityKind::kBuffer || !IsBlock(entity->type.dtype)) {
      return Fail(*buffer, "expected a buffer of a block format");
    }
    Index index;
    int depth = 0;
    for (size_t i = 0; i < entity->type.dims.size(); ++i) {
      QUERN_RETURN_IF_ERROR(Expect(","));
      QUERN_ASSIGN(Typed at, ReadTyped(DType::kI64));
      depth = std::max(depth, at.depth);
      index.push_back(std::move(at.expr));
    }
    QUERN_RETURN_IF_ERROR(Expect(")"));
    return Made(build::DecodeAt(std::string(buffer->text), std::move(index)), depth + 1, token);
  }
  const Entity* entity = Find(name);
  if (entity == nullptr) return Fail(token, absl::StrFormat("unknown name \"%s\"", std::string(name)));
  if (Is("[")) {
    if (entity->kind != EntityKind::kBuffer && entity->kind != EntityKind::kTile) {
      return Fail(token, absl::StrFormat("\"%s\" is not a buffer", std::string(name)));
    }
    return ReadLoad(token, entity->type);
  }
  if (entity->kind == EntityKind::kBuffer) return Expected("an index of the buffer");
  if (entity->kind == EntityKind::kTile && entity->live_maps == 0) return Expected("an index of the tile");
  return Typed{.expr = build::Ref(std::string(name), entity->type.dtype)};
}

StatusOr<std::pair<Index, int>> Parser::ReadIndex(size_t rank) {
  QUERN_RETURN_IF_ERROR(Expect("["));
  Index index;
  int depth = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (i > 0) QUERN_RETURN_IF_ERROR(Expect(","));
    QUERN_ASSIGN(Typed at, ReadTyped(DType::kI64));
    depth = std::max(depth, at.depth);
    index.push_back(std::move(at.expr));
  }
  if (!Is("]")) return Expected(absl::StrFormat("%d indices", rank));
  Next();
  return std::pair<Index, int>(std::move(index), depth);
}

StatusOr<Parser::Typed> Parser::ReadLoad(const Token& name, const BufferType& type) {
  if (IsBlock(type.dtype)) return Fail(name, "elements of a block format are read by decode(...)");
  const BufferType copy = type;  // the index may declare names, which moves nothing, but the reference is not ours
  QUERN_ASSIGN(auto index, ReadIndex(copy.dims.size()));
  ExprRef otherwise;
  if (Accept("else")) {
    const Token& at = Peek();
    QUERN_ASSIGN(Typed value, Unary());
    QUERN_ASSIGN(value, Convert(std::move(value), copy.dtype, at));
    index.second = std::max(index.second, value.depth);
    otherwise = std::move(value.expr);
  }
  ExprRef load = build::At(std::string(name.text), copy.dtype, std::move(index.first), std::move(otherwise));
  return Made(std::move(load), index.second + 1, name);
}

StatusOr<Parser::Typed> Parser::ReadConversion(bool bits) {
  QUERN_RETURN_IF_ERROR(Expect("<"));
  const Token& token = Peek();
  const std::optional<DType> dtype = DTypeFromName(token.text);
  if (!dtype || IsBlock(*dtype)) return Expected("a scalar dtype");
  Next();
  QUERN_RETURN_IF_ERROR(Expect(">"));
  QUERN_RETURN_IF_ERROR(Expect("("));
  QUERN_ASSIGN(Typed value, Binary(1));
  QUERN_RETURN_IF_ERROR(Expect(")"));
  if (value.flexible) {
    QUERN_ASSIGN(value, Convert(value, value.real ? DType::kF32 : DType::kI64, token));
  }
  const DType from = value.expr->dtype;
  if (bits && (from == DType::kBool || *dtype == DType::kBool || ScalarBytes(from) != ScalarBytes(*dtype))) {
    return Fail(token, absl::StrFormat("bits<%s> of %s: the sizes differ", std::string(quern::Name(*dtype)),
                                       std::string(quern::Name(from))));
  }
  const Expr expr = bits ? Expr{Bits{value.expr}, *dtype} : Expr{Cast{value.expr}, *dtype};
  return Made(std::make_shared<const Expr>(expr), value.depth + 1, token);
}

// contract(e), exact(e): whether multiply-adds inside may fuse.
StatusOr<Parser::Typed> Parser::ReadMarked(bool contract) {
  const bool before = std::exchange(contract_, contract);
  QUERN_RETURN_IF_ERROR(Expect("("));
  StatusOr<Typed> value = Binary(1);
  contract_ = before;
  if (!value.ok()) return value;
  QUERN_RETURN_IF_ERROR(Expect(")"));
  return value;
}

// sum [accs n] vec|for i in low..high { [let v = value;]... body }
StatusOr<Parser::Typed> Parser::ReadReduce(ReduceOp op) {
  Reduce reduce;
  reduce.op = op;
  const Token& at = Peek();
  if (Accept("accs")) {
    QUERN_ASSIGN(const int64_t accs, Integer("a number of accumulators", 1, kMaxAccs));
    reduce.accs = static_cast<int>(accs);
  }
  reduce.vec = Is("vec");
  if (!reduce.vec && (!Is("for") || reduce.accs != 1)) return Expected(reduce.accs == 1 ? "vec or for" : "vec");
  Next();
  QUERN_ASSIGN(const Token* index, Name("an index"));
  reduce.index = index->text;
  QUERN_RETURN_IF_ERROR(Expect("in"));
  QUERN_ASSIGN(Typed low, ReadTyped(DType::kI64));
  QUERN_RETURN_IF_ERROR(Expect(".."));
  QUERN_ASSIGN(Typed high, ReadTyped(DType::kI64));
  QUERN_RETURN_IF_ERROR(Expect("{"));
  const size_t mark = declared_.size();
  QUERN_RETURN_IF_ERROR(DeclareName(*index, Scalar(DType::kI64)));
  int depth = std::max(low.depth, high.depth);
  while (Accept("let")) {
    QUERN_ASSIGN(const Token* name, Name("a name"));
    QUERN_RETURN_IF_ERROR(Expect("="));
    QUERN_ASSIGN(Typed value, ReadTyped({}));
    QUERN_RETURN_IF_ERROR(DeclareName(*name, Scalar(value.expr->dtype)));
    depth = std::max(depth, value.depth);
    reduce.lets.emplace_back(std::string(name->text), std::move(value.expr));
    Accept(";");
  }
  const Token& body_at = Peek();
  QUERN_ASSIGN(Typed body, ReadTyped({}));
  LeaveScope(mark);
  QUERN_RETURN_IF_ERROR(Expect("}"));
  const DType dtype = body.expr->dtype;
  if (!IsFloat(dtype) && !IsInteger(dtype)) return Fail(body_at, "expected a number to reduce");
  depth = std::max(depth, body.depth) + 1;
  reduce.low = std::move(low.expr);
  reduce.high = std::move(high.expr);
  reduce.body = std::move(body.expr);
  return Made(std::make_shared<const Expr>(Expr{std::move(reduce), dtype}), depth, at);
}

StatusOr<Parser::Typed> Parser::ReadCall(Op op) {
  const Token& at = Peek();
  QUERN_RETURN_IF_ERROR(Expect("("));
  std::vector<Typed> args;
  for (int i = 0; i < Row(op).arity; ++i) {
    if (i > 0) QUERN_RETURN_IF_ERROR(Expect(","));
    QUERN_ASSIGN(Typed arg, Binary(1));
    args.push_back(std::move(arg));
  }
  QUERN_RETURN_IF_ERROR(Expect(")"));
  return Apply(op, std::move(args), at);
}

// `op` applied to args after giving them one dtype. All flexible: stays so, unless the operator itself decides.
StatusOr<Parser::Typed> Parser::Apply(Op op, std::vector<Typed> args, const Token& at) {
  const size_t first = op == Op::kSelect ? 1 : 0;  // the condition does not take part
  const bool comparison = op == Op::kEq || op == Op::kNe || op == Op::kLt || op == Op::kLe;
  if (op == Op::kSelect) {
    QUERN_ASSIGN(args[0], Convert(args[0], DType::kBool, at));
  }
  std::optional<DType> dtype;
  bool real = Row(op).domain == OpDomain::kFloat;
  for (size_t i = first; i < args.size(); ++i) {
    if (!args[i].flexible) dtype = args[i].expr->dtype;
    real = real || args[i].real;
  }
  if (!dtype && comparison) dtype = real ? DType::kF32 : DType::kI64;
  std::vector<ExprRef> operands;
  std::vector<DType> dtypes;
  int depth = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (dtype && args[i].flexible) {
      QUERN_ASSIGN(args[i], Convert(args[i], *dtype, at));
    }
    operands.push_back(args[i].expr);
    dtypes.push_back(args[i].expr->dtype);
    depth = std::max(depth, args[i].depth);
  }
  if (!dtype) {
    // Placeholder dtypes differ (1 + 0.5): Retype checks and rebuilds the tree once its dtype is known.
    kir::Apply node{op, std::move(operands), contract_};
    QUERN_ASSIGN(Typed made, Made(std::make_shared<const Expr>(Expr{std::move(node), dtypes.back()}), depth + 1, at));
    made.flexible = true;
    made.real = real;
    return made;
  }
  if (const StatusOr<DType> result = ResultType(op, dtypes); !result.ok())
    return Fail(at, std::string(result.status().message()));
  return Made(MakeApply(op, std::move(operands), contract_), depth + 1, at);
}

StatusOr<Parser::Typed> Parser::Convert(Typed value, DType dtype, const Token& at) {
  if (value.flexible) {
    QUERN_ASSIGN(value.expr, Retype(value.expr, dtype, at));
    value.flexible = false;
    return value;
  }
  if (value.expr->dtype == dtype) return value;
  return Fail(at, absl::StrFormat("expected %s, got %s", std::string(quern::Name(dtype)),
                                  std::string(quern::Name(value.expr->dtype))));
}

StatusOr<ExprRef> Parser::Retype(const ExprRef& expr, DType dtype, const Token& at) {
  const std::string name(quern::Name(dtype));
  if (const Const* literal = std::get_if<Const>(&expr->node)) {
    if (IsFloat(dtype)) {
      ExprRef made = MakeReal(literal->real, dtype);
      if (std::isinf(std::get<Const>(made->node).real) && !std::isinf(literal->real)) {
        return Fail(at, absl::StrFormat("literal out of range of %s", name));
      }
      return made;
    }
    if (!IsInteger(dtype)) return Fail(at, absl::StrFormat("expected %s, got a number", name));
    if (expr->dtype != DType::kI64) return Fail(at, absl::StrFormat("expected %s, got a real literal", name));
    const bool above_i64 = literal->real > 0 && literal->integer < 0;
    const bool fits = above_i64
                          ? dtype == DType::kU64
                          : (dtype != DType::kU64 || literal->integer >= 0) && IntegerFits(dtype, literal->integer);
    if (!fits) return Fail(at, absl::StrFormat("literal out of range of %s", name));
    return MakeInteger(literal->integer, dtype);
  }
  const kir::Apply& apply = std::get<kir::Apply>(expr->node);
  std::vector<ExprRef> args = apply.args;
  std::vector<DType> dtypes;
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0 || apply.op != Op::kSelect) {
      QUERN_ASSIGN(args[i], Retype(args[i], dtype, at));
    }
    dtypes.push_back(args[i]->dtype);
  }
  if (const StatusOr<DType> result = ResultType(apply.op, dtypes); !result.ok()) {
    return Fail(at, std::string(result.status().message()));
  }
  return MakeApply(apply.op, std::move(args), apply.contract);
}

StatusOr<Parser::Typed> Parser::ReadTyped(std::optional<DType> dtype) {
  const Token& at = Peek();
  QUERN_ASSIGN(Typed value, Binary(1));
  if (!dtype && !value.flexible) return value;
  const DType alone = value.real ? DType::kF32 : DType::kI64;
  return Convert(std::move(value), dtype.value_or(alone), at);
}

StatusOr<ExprRef> Parser::ReadAs(DType dtype) {
  QUERN_ASSIGN(Typed value, ReadTyped(dtype));
  return std::move(value.expr);
}

StatusOr<ExprRef> Parser::AnyExpr() {
  QUERN_ASSIGN(Typed value, ReadTyped({}));
  return std::move(value.expr);
}

}  // namespace quern::kir
