// The operators of KIR expressions: one table row each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace quern::kir {

enum class Op : uint8_t {
  // one operand
  kNeg,
  kAbs,
  kNot,
  kFloor,
  kCeil,
  kTrunc,
  kRound,  // round: half to even
  kExp,
  kExp2,
  kExpm1,  // e^a - 1
  kLog,
  kLog2,
  kLog1p,  // log(1 + a)
  kSin,
  kCos,
  kTan,
  kAtan,
  kTanh,
  kErf,
  kSqrt,
  kRsqrt,
  kSigmoid,
  // two operands
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kShl,
  kShr,
  kPow,
  kAtan2,
  // comparisons, giving bool
  kEq,
  kNe,
  kLt,
  kLe,
  // three operands
  kSelect,
  kFma,
};
inline constexpr int kOpCount = static_cast<int>(Op::kFma) + 1;

// Which dtypes an operator takes. Operands agree (select: the last two; its first is bool).
enum class OpDomain : uint8_t {
  kNumeric,  // floats and integers
  kFloat,    // floats
  kBitwise,  // integers and bool
  kInteger,  // integers
  kAny,      // numeric and bool
};
bool Takes(OpDomain domain, DType dtype);

// How the text form writes it.
enum class OpSyntax : uint8_t { kPrefix, kInfix, kCall };

struct OpRow {
  Op op;
  const char* name;  // "exp", or the prefix or infix token
  int arity;
  OpDomain domain;
  OpSyntax syntax;
  int precedence;  // infix only, all left-associative; higher binds tighter
  bool math;       // a transcendental with a binding per target (Highway bitcode on CPUs)
  // The value on doubles; null for operators that floats do not have (shifts and bitwise operators).
  double (*eval)(double a, double b, double c);
};

// Semantics where languages differ:
//   /    floats IEEE; integers truncate toward zero, x / 0 = 0, and the most negative number / -1 wraps to itself
//   %    the result has the sign of the divisor (floored), on integers and floats alike; integer x % 0 = 0
//   min, max propagate NaN;  round: half to even;  integer +, -, *, - and abs wrap
//   <<, >> by a count outside 0 .. width - 1 give 0, or the sign of a signed value shifted right
//   &, |, ^, ! are bitwise on integers and logical on bool;  comparisons with NaN are false, but != is true
//   select evaluates both branches
const OpRow& Row(Op op);
// The infix or call operator of that name ("+", "exp"); prefix operators have no name of their own.
std::optional<Op> OpFromName(std::string_view name);
// The value on integers and bool of `dtype`, operands being already wrapped to it (u64: the same bits as int64_t). The
// caller wraps the result to `dtype`; comparisons give 0 or 1. For kSelect, dtype is that of b and c.
// Precondition: not an operator of OpDomain::kFloat.
int64_t EvalInteger(Op op, DType dtype, int64_t a, int64_t b, int64_t c);

enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin };
std::string_view Name(ReduceOp op);
std::optional<ReduceOp> ReduceOpFromName(std::string_view name);
// The value a reduction starts from, for floats (sum 0, prod 1, max -inf, min +inf), and for integers, where the
// extremes are those of the dtype (u64: as the bits of int64_t).
double Identity(ReduceOp op);
int64_t IntegerIdentity(ReduceOp op, DType dtype);
Op CombineOp(ReduceOp op);

}  // namespace quern::kir
