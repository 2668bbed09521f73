// The operator table and its integer evaluation. Rows are in the order of the enumerators.
#include "kir/operators.h"

#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/check.h"

namespace quern::kir {
namespace {

constexpr OpDomain kNum = OpDomain::kNumeric;
constexpr OpDomain kFloats = OpDomain::kFloat;
constexpr OpSyntax kFix = OpSyntax::kInfix;
constexpr OpSyntax kFun = OpSyntax::kCall;

// Sign of the divisor, as floor(a / b) would leave it; exact, because fmod is.
double FlooredMod(double a, double b) {
  const double remainder = std::fmod(a, b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}
double NanMin(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : (b < a ? b : a); }
double NanMax(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : (a < b ? b : a); }
double RoundHalfEven(double a) {
  const double down = std::floor(a), rest = a - down;
  if (rest != 0.5) return std::copysign(rest < 0.5 ? down : down + 1, a);
  return std::copysign(std::fmod(down, 2) == 0 ? down : down + 1, a);
}

#define QUERN_EVAL(expression) \
  [](double a, [[maybe_unused]] double b, [[maybe_unused]] double c) -> double { return expression; }

constexpr OpRow kRows[] = {
    {Op::kNeg, "-", 1, kNum, OpSyntax::kPrefix, 0, false, QUERN_EVAL(-a)},
    {Op::kAbs, "abs", 1, kNum, kFun, 0, false, QUERN_EVAL(std::fabs(a))},
    {Op::kNot, "!", 1, OpDomain::kBitwise, OpSyntax::kPrefix, 0, false, nullptr},
    {Op::kFloor, "floor", 1, kFloats, kFun, 0, false, QUERN_EVAL(std::floor(a))},
    {Op::kCeil, "ceil", 1, kFloats, kFun, 0, false, QUERN_EVAL(std::ceil(a))},
    {Op::kTrunc, "trunc", 1, kFloats, kFun, 0, false, QUERN_EVAL(std::trunc(a))},
    {Op::kRound, "round", 1, kFloats, kFun, 0, false, QUERN_EVAL(RoundHalfEven(a))},
    {Op::kExp, "exp", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::exp(a))},
    {Op::kExp2, "exp2", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::exp2(a))},
    {Op::kExpm1, "expm1", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::expm1(a))},
    {Op::kLog, "log", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::log(a))},
    {Op::kLog2, "log2", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::log2(a))},
    {Op::kLog1p, "log1p", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::log1p(a))},
    {Op::kSin, "sin", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::sin(a))},
    {Op::kCos, "cos", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::cos(a))},
    {Op::kTan, "tan", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::tan(a))},
    {Op::kAtan, "atan", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::atan(a))},
    {Op::kTanh, "tanh", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::tanh(a))},
    {Op::kErf, "erf", 1, kFloats, kFun, 0, true, QUERN_EVAL(std::erf(a))},
    {Op::kSqrt, "sqrt", 1, kFloats, kFun, 0, false, QUERN_EVAL(std::sqrt(a))},
    {Op::kRsqrt, "rsqrt", 1, kFloats, kFun, 0, false, QUERN_EVAL(1 / std::sqrt(a))},
    {Op::kSigmoid, "sigmoid", 1, kFloats, kFun, 0, true, QUERN_EVAL(1 / (1 + std::exp(-a)))},
    {Op::kAdd, "+", 2, kNum, kFix, 6, false, QUERN_EVAL(a + b)},
    {Op::kSub, "-", 2, kNum, kFix, 6, false, QUERN_EVAL(a - b)},
    {Op::kMul, "*", 2, kNum, kFix, 7, false, QUERN_EVAL(a* b)},
    {Op::kDiv, "/", 2, kNum, kFix, 7, false, QUERN_EVAL(a / b)},
    {Op::kMod, "%", 2, kNum, kFix, 7, false, QUERN_EVAL(FlooredMod(a, b))},
    {Op::kMin, "min", 2, kNum, kFun, 0, false, QUERN_EVAL(NanMin(a, b))},
    {Op::kMax, "max", 2, kNum, kFun, 0, false, QUERN_EVAL(NanMax(a, b))},
    {Op::kAnd, "&", 2, OpDomain::kBitwise, kFix, 4, false, nullptr},
    {Op::kOr, "|", 2, OpDomain::kBitwise, kFix, 2, false, nullptr},
    {Op::kXor, "^", 2, OpDomain::kBitwise, kFix, 3, false, nullptr},
    {Op::kShl, "<<", 2, OpDomain::kInteger, kFix, 5, false, nullptr},
    {Op::kShr, ">>", 2, OpDomain::kInteger, kFix, 5, false, nullptr},
    {Op::kPow, "pow", 2, kFloats, kFun, 0, true, QUERN_EVAL(std::pow(a, b))},
    {Op::kAtan2, "atan2", 2, kFloats, kFun, 0, true, QUERN_EVAL(std::atan2(a, b))},
    {Op::kEq, "==", 2, OpDomain::kAny, kFix, 1, false, QUERN_EVAL(a == b ? 1 : 0)},
    {Op::kNe, "!=", 2, OpDomain::kAny, kFix, 1, false, QUERN_EVAL(a != b ? 1 : 0)},
    {Op::kLt, "<", 2, kNum, kFix, 1, false, QUERN_EVAL(a < b ? 1 : 0)},
    {Op::kLe, "<=", 2, kNum, kFix, 1, false, QUERN_EVAL(a <= b ? 1 : 0)},
    {Op::kSelect, "select", 3, OpDomain::kAny, kFun, 0, false, QUERN_EVAL(a != 0 ? b : c)},
    {Op::kFma, "fma", 3, kFloats, kFun, 0, false, QUERN_EVAL(std::fma(a, b, c))},
};
#undef QUERN_EVAL
static_assert(std::size(kRows) == kOpCount);
constexpr bool RowsInOrder() {
  for (int i = 0; i < kOpCount; ++i) {
    if (static_cast<int>(kRows[i].op) != i) return false;
  }
  return true;
}
static_assert(RowsInOrder());

// Two's complement arithmetic without undefined overflow.
int64_t Wrap(uint64_t value) { return std::bit_cast<int64_t>(value); }

int64_t Divide(bool is_unsigned, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (is_unsigned) return Wrap(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  if (b == -1) return Wrap(0 - static_cast<uint64_t>(a));
  return a / b;
}

int64_t Modulo(bool is_unsigned, int64_t a, int64_t b) {
  if (b == 0 || b == -1) return is_unsigned && b != 0 ? Wrap(static_cast<uint64_t>(a) % static_cast<uint64_t>(b)) : 0;
  if (is_unsigned) return Wrap(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

int64_t ShiftLeft(int width, int64_t a, int64_t count) {
  return count < 0 || count >= width ? 0 : Wrap(static_cast<uint64_t>(a) << count);
}

int64_t ShiftRight(bool is_unsigned, int width, int64_t a, int64_t count) {
  const bool out_of_range = count < 0 || count >= width;
  if (is_unsigned) {
    const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    return out_of_range ? 0 : Wrap((static_cast<uint64_t>(a) & mask) >> count);
  }
  return a >> (out_of_range ? 63 : count);
}

bool Less(bool is_unsigned, int64_t a, int64_t b) {
  return is_unsigned ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

struct ReduceRow {
  ReduceOp op;
  const char* name;
  double identity;
  Op combine;
};
constexpr ReduceRow kReduceRows[] = {
    {ReduceOp::kSum, "sum", 0, Op::kAdd},
    {ReduceOp::kProd, "prod", 1, Op::kMul},
    {ReduceOp::kMax, "max", -std::numeric_limits<double>::infinity(), Op::kMax},
    {ReduceOp::kMin, "min", std::numeric_limits<double>::infinity(), Op::kMin},
};

}  // namespace

bool Takes(OpDomain domain, DType dtype) {
  switch (domain) {
    case OpDomain::kNumeric: return IsFloat(dtype) || IsInteger(dtype);
    case OpDomain::kFloat: return IsFloat(dtype);
    case OpDomain::kBitwise: return IsInteger(dtype) || dtype == DType::kBool;
    case OpDomain::kInteger: return IsInteger(dtype);
    case OpDomain::kAny: return !IsBlock(dtype);
  }
  QUERN_CHECK(false);
}

const OpRow& Row(Op op) { return kRows[static_cast<int>(op)]; }

std::optional<Op> OpFromName(std::string_view name) {
  for (const OpRow& row : kRows) {
    if (row.syntax != OpSyntax::kPrefix && name == row.name) return row.op;
  }
  return std::nullopt;
}

int64_t EvalInteger(Op op, DType dtype, int64_t a, int64_t b, int64_t c) {
  const bool is_unsigned = IsUnsigned(dtype) || dtype == DType::kBool;
  const int width = dtype == DType::kBool ? 1 : 8 * ScalarBytes(dtype);
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kNeg: return Wrap(0 - ua);
    case Op::kAbs: return !is_unsigned && a < 0 ? Wrap(0 - ua) : a;
    case Op::kNot: return dtype == DType::kBool ? a == 0 : ~a;
    case Op::kAdd: return Wrap(ua + ub);
    case Op::kSub: return Wrap(ua - ub);
    case Op::kMul: return Wrap(ua * ub);
    case Op::kDiv: return Divide(is_unsigned, a, b);
    case Op::kMod: return Modulo(is_unsigned, a, b);
    case Op::kMin: return Less(is_unsigned, b, a) ? b : a;
    case Op::kMax: return Less(is_unsigned, a, b) ? b : a;
    case Op::kAnd: return a & b;
    case Op::kOr: return a | b;
    case Op::kXor: return a ^ b;
    case Op::kShl: return ShiftLeft(width, a, b);
    case Op::kShr: return ShiftRight(is_unsigned, width, a, b);
    case Op::kEq: return a == b;
    case Op::kNe: return a != b;
    case Op::kLt: return Less(is_unsigned, a, b);
    case Op::kLe: return !Less(is_unsigned, b, a);
    case Op::kSelect: return a != 0 ? b : c;
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
    case Op::kRound:
    case Op::kExp:
    case Op::kExp2:
    case Op::kExpm1:
    case Op::kLog:
    case Op::kLog2:
    case Op::kLog1p:
    case Op::kSin:
    case Op::kCos:
    case Op::kTan:
    case Op::kAtan:
    case Op::kTanh:
    case Op::kErf:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kSigmoid:
    case Op::kPow:
    case Op::kAtan2:
    case Op::kFma: break;
  }
  QUERN_CHECK(false && "a float operator on integers");
  return 0;
}

std::string_view Name(ReduceOp op) { return kReduceRows[static_cast<int>(op)].name; }

std::optional<ReduceOp> ReduceOpFromName(std::string_view name) {
  for (const ReduceRow& row : kReduceRows) {
    if (name == row.name) return row.op;
  }
  return std::nullopt;
}

double Identity(ReduceOp op) { return kReduceRows[static_cast<int>(op)].identity; }

int64_t IntegerIdentity(ReduceOp op, DType dtype) {
  const bool is_unsigned = IsUnsigned(dtype) || dtype == DType::kBool;
  const int bits = dtype == DType::kBool ? 1 : 8 * ScalarBytes(dtype);
  const int64_t high =
      bits == 64 ? (is_unsigned ? -1 : INT64_MAX) : (int64_t{1} << (is_unsigned ? bits : bits - 1)) - 1;
  switch (op) {
    case ReduceOp::kSum: return 0;
    case ReduceOp::kProd: return 1;
    case ReduceOp::kMin: return high;
    case ReduceOp::kMax: return is_unsigned ? 0 : -high - 1;
  }
  QUERN_CHECK(false);
}

Op CombineOp(ReduceOp op) { return kReduceRows[static_cast<int>(op)].combine; }

}  // namespace quern::kir
