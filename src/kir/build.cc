#include "kir/build.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "base/check.h"
#include "base/divide.h"
#include "base/half.h"
#include "kir/rewrite.h"

namespace quern::kir {
namespace {

template <typename Node>
ExprRef MakeExpr(Node node, DType dtype) {
  return std::make_shared<const Expr>(Expr{std::move(node), dtype});
}
template <typename Node>
StmtRef MakeStmt(Node node) {
  return std::make_shared<const Stmt>(Stmt{std::move(node)});
}

double RoundTo(DType dtype, double value) {
  if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();  // one NaN, so that equal texts are equal
  switch (dtype) {
    case DType::kF32: return static_cast<float>(value);
    case DType::kF16: return HalfToFloat(FloatToHalf(static_cast<float>(value)));
    case DType::kBF16: return BFloat16ToFloat(FloatToBFloat16(static_cast<float>(value)));
    default: return value;
  }
}

const char* DomainName(OpDomain domain) {
  switch (domain) {
    case OpDomain::kNumeric: return "a number";
    case OpDomain::kFloat: return "a float";
    case OpDomain::kBitwise: return "an integer or bool";
    case OpDomain::kInteger: return "an integer";
    case OpDomain::kAny: return "a scalar";
  }
  QUERN_CHECK(false);
}

bool IsComparison(Op op) { return op == Op::kEq || op == Op::kNe || op == Op::kLt || op == Op::kLe; }

void CheckIndex(const Index& index) {
  for (const ExprRef& at : index) QUERN_CHECK(at != nullptr && at->dtype == DType::kI64);
}
void CheckSlice(const Slice& slice) {
  for (const SliceDim& dim : slice.dims) {
    QUERN_CHECK(dim.start != nullptr || dim.extent == nullptr);
    QUERN_CHECK(dim.start == nullptr || dim.start->dtype == DType::kI64);
    QUERN_CHECK(dim.extent == nullptr || dim.extent->dtype == DType::kI64);
  }
}

// The value of an i64 literal.
const int64_t* Literal(const ExprRef& expr) {
  const Const* literal = std::get_if<Const>(&expr->node);
  return literal != nullptr && expr->dtype == DType::kI64 ? &literal->integer : nullptr;
}

// An equal but simpler expression for an i64 operator, or null.
ExprRef Simplify(Op op, const ExprRef& a, const ExprRef& b) {
  const int64_t* x = Literal(a);
  const int64_t* y = Literal(b);
  if (x != nullptr && y != nullptr && !IsComparison(op)) {
    return MakeInteger(EvalInteger(op, DType::kI64, *x, *y, 0), DType::kI64);
  }
  if (y != nullptr) {
    if (*y == 0 && (op == Op::kAdd || op == Op::kSub || op == Op::kMul)) return op == Op::kMul ? b : a;
    if (*y == 1 && (op == Op::kMul || op == Op::kDiv)) return a;
    if (*y == 1 && op == Op::kMod) return MakeInteger(0, DType::kI64);
    const Apply* inner = std::get_if<Apply>(&a->node);
    if (op == Op::kAdd && inner != nullptr && inner->op == Op::kAdd && Literal(inner->args[1]) != nullptr) {
      int64_t sum;
      if (!__builtin_add_overflow(*Literal(inner->args[1]), *y, &sum)) {
        return build::Call(Op::kAdd, {inner->args[0], MakeInteger(sum, DType::kI64)});
      }
    }
  }
  if (x != nullptr) {
    if (*x == 0 && (op == Op::kAdd || op == Op::kMul)) return op == Op::kAdd ? b : a;
    if (*x == 1 && op == Op::kMul) return b;
  }
  return nullptr;
}

}  // namespace

StatusOr<DType> ResultType(Op op, std::span<const DType> operands) {
  const OpRow& row = Row(op);
  auto fail = [&](std::string message) { return absl::InvalidArgumentError(std::string(row.name) + " " + message); };
  if (static_cast<int>(operands.size()) != row.arity) {
    return fail(absl::StrFormat("takes %d operands, got %d", row.arity, operands.size()));
  }
  if (op == Op::kSelect) {
    if (operands[0] != DType::kBool) {
      return fail(absl::StrFormat("needs a bool condition, got %s", std::string(Name(operands[0]))));
    }
    operands = operands.subspan(1);
  }
  for (DType dtype : operands) {
    if (!Takes(row.domain, dtype)) {
      return fail(absl::StrFormat("needs %s, got %s", DomainName(row.domain), std::string(Name(dtype))));
    }
    if (dtype != operands[0]) {
      return fail(absl::StrFormat("needs operands of one dtype, got %s and %s", std::string(Name(operands[0])),
                                  std::string(Name(dtype))));
    }
  }
  return IsComparison(op) ? DType::kBool : operands[0];
}

std::optional<int64_t> KnownInteger(const ExprRef& expr) {
  const auto* constant = expr == nullptr || IsFloat(expr->dtype) ? nullptr : std::get_if<Const>(&expr->node);
  return constant == nullptr ? std::nullopt : std::optional(constant->integer);
}

std::optional<double> KnownReal(const ExprRef& expr) {
  const auto* constant = expr != nullptr && IsFloat(expr->dtype) ? std::get_if<Const>(&expr->node) : nullptr;
  return constant == nullptr ? std::nullopt : std::optional(constant->real);
}

bool IntegerFits(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value == 0 || value == 1;
  const int bits = 8 * ScalarBytes(dtype);
  if (bits == 64) return true;
  if (IsUnsigned(dtype)) return value >= 0 && value < int64_t{1} << bits;
  return value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1);
}

ExprRef MakeReal(double value, DType dtype) {
  QUERN_CHECK(IsFloat(dtype));
  return MakeExpr(Const{.real = RoundTo(dtype, value)}, dtype);
}

ExprRef MakeInteger(int64_t value, DType dtype) {
  QUERN_CHECK(IsInteger(dtype) || dtype == DType::kBool);
  QUERN_CHECK(IntegerFits(dtype, value));
  return MakeExpr(Const{.integer = value}, dtype);
}

ExprRef MakeApply(Op op, std::vector<ExprRef> args, bool contract) {
  std::vector<DType> dtypes;
  for (const ExprRef& arg : args) {
    QUERN_CHECK(arg != nullptr);
    dtypes.push_back(arg->dtype);
  }
  const StatusOr<DType> dtype = ResultType(op, dtypes);
  QUERN_CHECK(dtype.ok());
  contract = contract && IsFloat(*dtype) && (op == Op::kAdd || op == Op::kSub || op == Op::kMul);
  return MakeExpr(Apply{op, std::move(args), contract}, *dtype);
}

SymbolDecl DerivedSymbol(std::string name, Extent numerator, int64_t divisor, const std::vector<SymbolDecl>& before) {
  QUERN_CHECK(divisor > 0);
  SymbolRanges ranges;
  for (const SymbolDecl& symbol : before) ranges[symbol.name] = symbol.range;
  const std::optional<int64_t> low = numerator.LowerBound(ranges), high = numerator.UpperBound(ranges);
  SymbolDecl symbol;
  symbol.name = std::move(name);
  symbol.range = {low ? CeilDiv(*low, divisor) : 0, high ? CeilDiv(*high, divisor) : INT64_MAX};
  symbol.derived.emplace(std::move(numerator), divisor);
  return symbol;
}

namespace build {

ExprRef Num(double value, DType dtype) { return MakeReal(value, dtype); }
ExprRef Int(int64_t value, DType dtype) { return MakeInteger(value, dtype); }
ExprRef Bool(bool value) { return MakeInteger(value, DType::kBool); }

ExprRef Ref(std::string name, DType dtype) {
  QUERN_CHECK(!IsBlock(dtype));
  return MakeExpr(NameRef{std::move(name)}, dtype);
}

ExprRef At(std::string buffer, DType dtype, Index index, ExprRef otherwise) {
  QUERN_CHECK(!IsBlock(dtype));
  QUERN_CHECK(otherwise == nullptr || otherwise->dtype == dtype);
  CheckIndex(index);
  return MakeExpr(Load{std::move(buffer), std::move(index), std::move(otherwise)}, dtype);
}

ExprRef DecodeAt(std::string buffer, Index index) {
  CheckIndex(index);
  return MakeExpr(Decode{std::move(buffer), std::move(index)}, DType::kF32);
}

ExprRef Call(Op op, std::vector<ExprRef> args) {
  if (args.size() == 2 && args[0]->dtype == DType::kI64 && args[1]->dtype == DType::kI64) {
    if (ExprRef simple = Simplify(op, args[0], args[1])) return simple;
  }
  return MakeApply(op, std::move(args));
}

ExprRef Select(ExprRef condition, ExprRef yes, ExprRef no) {
  return MakeApply(Op::kSelect, {std::move(condition), std::move(yes), std::move(no)});
}

ExprRef Min(ExprRef a, ExprRef b) { return Call(Op::kMin, {std::move(a), std::move(b)}); }
ExprRef Max(ExprRef a, ExprRef b) { return Call(Op::kMax, {std::move(a), std::move(b)}); }

ExprRef IdentityOf(ReduceOp op, DType dtype) {
  return IsFloat(dtype) ? Num(Identity(op), dtype) : Int(IntegerIdentity(op, dtype), dtype);
}

ExprRef CastTo(DType dtype, ExprRef value) {
  QUERN_CHECK(!IsBlock(dtype) && !IsBlock(value->dtype));
  if (value->dtype == dtype) return value;
  return MakeExpr(Cast{std::move(value)}, dtype);
}

ExprRef BitsTo(DType dtype, ExprRef value) {
  QUERN_CHECK(dtype != DType::kBool && value->dtype != DType::kBool);
  QUERN_CHECK(ScalarBytes(dtype) == ScalarBytes(value->dtype));
  return MakeExpr(Bits{std::move(value)}, dtype);
}

ExprRef Contract(const ExprRef& value, std::span<const ExprRef> inputs) {
  const auto given = [&](const ExprRef& node) -> ExprRef {
    return std::find(inputs.begin(), inputs.end(), node) == inputs.end() ? nullptr : node;
  };
  return Rewrite(value, given, [](const ExprRef& node) -> ExprRef {
    const auto* apply = std::get_if<Apply>(&node->node);
    return apply == nullptr || apply->contract ? nullptr : MakeApply(apply->op, apply->args, true);
  });
}

ExprRef Term(const ExprRef& value) {
  const auto* apply = std::get_if<Apply>(&value->node);
  return apply == nullptr || !IsFloat(value->dtype) ? value : MakeApply(apply->op, apply->args, true);
}

namespace {
ExprRef MakeReduce(Reduce reduce) {
  QUERN_CHECK(reduce.low->dtype == DType::kI64 && reduce.high->dtype == DType::kI64);
  const DType dtype = reduce.body->dtype;
  QUERN_CHECK(IsFloat(dtype) || IsInteger(dtype));
  QUERN_CHECK(reduce.accs >= 1 && reduce.accs <= kMaxAccs && (reduce.vec || reduce.accs == 1));
  for (const auto& [name, value] : reduce.lets) QUERN_CHECK(value != nullptr);
  return MakeExpr(std::move(reduce), dtype);
}
}  // namespace

ExprRef ReduceVec(ReduceOp op, int accs, std::string index, ExprRef low, ExprRef high, ExprRef body, Lets lets) {
  return MakeReduce(
      {op, true, accs, std::move(index), std::move(low), std::move(high), std::move(lets), std::move(body)});
}
ExprRef ReduceFor(ReduceOp op, std::string index, ExprRef low, ExprRef high, ExprRef body, Lets lets) {
  return MakeReduce(
      {op, false, 1, std::move(index), std::move(low), std::move(high), std::move(lets), std::move(body)});
}
ExprRef SumVec(int accs, std::string index, ExprRef low, ExprRef high, ExprRef body) {
  return ReduceVec(ReduceOp::kSum, accs, std::move(index), std::move(low), std::move(high), std::move(body));
}

ExprRef FromExtent(const Extent& extent) {
  ExprRef sum = Int(0);
  for (const Extent::Term& term : extent.terms()) {
    ExprRef product;
    for (const std::string& symbol : term.symbols) {
      product = product == nullptr ? Ref(symbol) : Call(Op::kMul, {product, Ref(symbol)});
    }
    product = product == nullptr ? Int(term.coefficient) : Call(Op::kMul, {product, Int(term.coefficient)});
    sum = Call(Op::kAdd, {sum, product});
  }
  return sum;
}

Slice Whole(std::string buffer, int rank) { return {std::move(buffer), std::vector<SliceDim>(rank)}; }
Slice SliceOf(std::string buffer, std::vector<SliceDim> dims) {
  Slice slice{std::move(buffer), std::move(dims)};
  CheckSlice(slice);
  return slice;
}

namespace {
StmtRef MakeLoop(Loop loop) {
  QUERN_CHECK(loop.low->dtype == DType::kI64 && loop.high->dtype == DType::kI64 && loop.step > 0);
  return MakeStmt(std::move(loop));
}
}  // namespace

StmtRef For(std::string index, ExprRef low, ExprRef high, Block body, int64_t step) {
  return MakeLoop(
      {LoopKind::kFor, std::move(index), std::move(low), std::move(high), step, VecTail::kMask, std::move(body)});
}
StmtRef Unroll(std::string index, ExprRef low, ExprRef high, Block body, int64_t step) {
  return MakeLoop(
      {LoopKind::kUnroll, std::move(index), std::move(low), std::move(high), step, VecTail::kMask, std::move(body)});
}
StmtRef Vec(std::string index, ExprRef low, ExprRef high, Block body, VecTail tail) {
  return MakeLoop({LoopKind::kVec, std::move(index), std::move(low), std::move(high), 1, tail, std::move(body)});
}
StmtRef If(ExprRef condition, Block then_body, Block else_body) {
  QUERN_CHECK(condition->dtype == DType::kBool);
  return MakeStmt(kir::If{std::move(condition), std::move(then_body), std::move(else_body)});
}
StmtRef Let(std::string name, ExprRef value) {
  QUERN_CHECK(value != nullptr);
  return MakeStmt(kir::Let{std::move(name), std::move(value)});
}
StmtRef Var(std::string name, ExprRef value) {
  QUERN_CHECK(value != nullptr);
  return MakeStmt(kir::Var{std::move(name), std::move(value)});
}
StmtRef Assign(std::string name, ExprRef value) {
  QUERN_CHECK(value != nullptr);
  return MakeStmt(kir::Assign{std::move(name), std::move(value)});
}
StmtRef Store(std::string buffer, Index index, ExprRef value) {
  QUERN_CHECK(value != nullptr);
  CheckIndex(index);
  return MakeStmt(kir::Store{std::move(buffer), std::move(index), std::move(value)});
}
StmtRef Alloc(std::string name, BufferType type, Space space) {
  QUERN_CHECK(LayoutAllows(type.layout, type.dtype));
  return MakeStmt(kir::Alloc{std::move(name), std::move(type), space});
}
StmtRef Tile(std::string name, std::vector<int64_t> dims, double init, DType dtype) {
  BufferType type;
  type.dtype = dtype;
  for (int64_t dim : dims) {
    QUERN_CHECK(dim > 0);
    type.dims.push_back(dim);
  }
  return MakeStmt(kir::Tile{std::move(name), std::move(type),
                            IsFloat(dtype) ? Num(init, dtype) : Int(static_cast<int64_t>(init), dtype)});
}
StmtRef CallTile(std::string op, std::vector<std::string> tiles, std::vector<Slice> operands,
                 std::vector<std::pair<std::string, ExprRef>> attributes) {
  for (const Slice& slice : operands) CheckSlice(slice);
  return MakeStmt(TileCall{std::move(op), std::move(tiles), std::move(operands), std::move(attributes)});
}
StmtRef Map(std::vector<std::string> indices, std::vector<std::string> tiles, std::vector<ExprRef> extents,
            Block body) {
  QUERN_CHECK(!tiles.empty() && indices.size() == extents.size());
  CheckIndex(extents);
  return MakeStmt(kir::Map{std::move(indices), std::move(tiles), std::move(extents), std::move(body)});
}
StmtRef Pack(Slice dst, Slice src) {
  CheckSlice(dst);
  CheckSlice(src);
  return MakeStmt(kir::Pack{std::move(dst), std::move(src)});
}
StmtRef Prefetch(Slice slice) {
  CheckSlice(slice);
  return MakeStmt(kir::Prefetch{std::move(slice)});
}
StmtRef Thread(ThreadLevel level, std::string index, int64_t count, Block body) {
  return MakeLoop({LoopKind::kThread, std::move(index), Int(0), Int(count), 1, VecTail::kMask, std::move(body), level});
}
StmtRef Barrier() { return MakeStmt(kir::Barrier{}); }
StmtRef Copy(Slice dst, Slice src) {
  CheckSlice(dst);
  CheckSlice(src);
  return MakeStmt(kir::Copy{std::move(dst), std::move(src)});
}
StmtRef Pipeline(std::string index, ExprRef low, ExprRef high, int64_t step, int stages, Block fetch, Block use) {
  QUERN_CHECK(low->dtype == DType::kI64 && high->dtype == DType::kI64 && step > 0 && stages > 0);
  return MakeStmt(
      kir::Pipeline{std::move(index), std::move(low), std::move(high), step, stages, std::move(fetch), std::move(use)});
}
StmtRef Shuffle(std::string name, ShuffleKind kind, ExprRef value, ExprRef lane) {
  QUERN_CHECK(lane->dtype == DType::kI64);
  return MakeStmt(kir::Shuffle{std::move(name), kind, std::move(value), std::move(lane)});
}
StmtRef WithOrigin(const StmtRef& stmt, int origin) {
  Stmt copy = *stmt;
  copy.origin = origin;
  return std::make_shared<const Stmt>(std::move(copy));
}

namespace operators {
namespace {
ExprRef Like(const ExprRef& expr, double value) {
  if (IsFloat(expr->dtype)) return Num(value, expr->dtype);
  QUERN_CHECK(value == std::floor(value) && std::fabs(value) < 0x1p53);
  return Int(static_cast<int64_t>(value), expr->dtype);
}
}  // namespace
ExprRef operator+(const ExprRef& a, const ExprRef& b) { return Call(Op::kAdd, {a, b}); }
ExprRef operator-(const ExprRef& a, const ExprRef& b) { return Call(Op::kSub, {a, b}); }
ExprRef operator*(const ExprRef& a, const ExprRef& b) { return Call(Op::kMul, {a, b}); }
ExprRef operator/(const ExprRef& a, const ExprRef& b) { return Call(Op::kDiv, {a, b}); }
ExprRef operator%(const ExprRef& a, const ExprRef& b) { return Call(Op::kMod, {a, b}); }
ExprRef operator-(const ExprRef& a) { return Call(Op::kNeg, {a}); }
ExprRef operator+(const ExprRef& a, double b) { return a + Like(a, b); }
ExprRef operator-(const ExprRef& a, double b) { return a - Like(a, b); }
ExprRef operator*(const ExprRef& a, double b) { return a * Like(a, b); }
ExprRef operator/(const ExprRef& a, double b) { return a / Like(a, b); }
ExprRef operator%(const ExprRef& a, double b) { return a % Like(a, b); }
ExprRef operator+(double a, const ExprRef& b) { return Like(b, a) + b; }
ExprRef operator-(double a, const ExprRef& b) { return Like(b, a) - b; }
ExprRef operator*(double a, const ExprRef& b) { return Like(b, a) * b; }
ExprRef operator/(double a, const ExprRef& b) { return Like(b, a) / b; }
}  // namespace operators
}  // namespace build
}  // namespace quern::kir
