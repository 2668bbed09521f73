// The operators of KIR expressions: one table row each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace quern::kir {

enum class Op : uint8_t {
  // one operand
  kNeg, kAbs, kNot, kFloor, kCeil, kTrunc, kRound,  // round: half to even
  kExp, kExp2, kLog, kLog2, kSin, kCos, kTan, kAtan, kTanh, kErf, kSqrt, kRsqrt, kSigmoid,
  // two operands
  kAdd, kSub, kMul, kDiv, kMod, kMin, kMax, kAnd, kOr, kXor, kShl, kShr, kPow, kAtan2,
  // comparisons, giving bool
  kEq, kNe, kLt, kLe,
  // three operands
  kSelect, kFma,
};
inline constexpr int kOpCount = static_cast<int>(Op::kFma) + 1;

// Which dtypes an operator takes. Operands agree (select: the last two; its first is bool).
enum class OpDomain : uint8_t {
  kNumeric,   // floats and integers
  kFloat,     // floats
  kBitwise,   // integers and bool
  kInteger,   // integers
  kAny,       // numeric and bool
};

// How the text form writes it.
enum class OpSyntax : uint8_t { kPrefix, kInfix, kCall };

struct OpRow {
  Op op;
  const char* name;       // "exp", or the infix token
  int arity;
  OpDomain domain;
  OpSyntax syntax;
  int precedence;         // infix only; higher binds tighter
  bool math;              // a transcendental with a binding per target (Highway bitcode on CPUs)
  // The value on doubles; null for operators that need the integer form (shifts, and/or/xor, integer div and mod).
  double (*eval)(double a, double b, double c);
};

// Semantics where languages differ: min and max propagate NaN; mod has the sign of the divisor (floored) for integers and
// is fmod-like floored for floats; integer division floors... see operators.cc, each row's comment.
const OpRow& Row(Op op);
std::optional<Op> OpFromName(std::string_view name);
// The value on 64-bit integers wrapped to `dtype` by the caller. Division or modulo by zero gives 0.
int64_t EvalInteger(Op op, DType dtype, int64_t a, int64_t b, int64_t c);

enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin };
std::string_view Name(ReduceOp op);
std::optional<ReduceOp> ReduceOpFromName(std::string_view name);
// The value a reduction starts from, for floats (sum 0, prod 1, max -inf, min +inf); integers: the dtype's own extreme.
double Identity(ReduceOp op);
Op CombineOp(ReduceOp op);

}  // namespace quern::kir
