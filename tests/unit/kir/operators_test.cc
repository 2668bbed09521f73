// The operator table: values at the edges that languages disagree on, integer and double forms against each other.
#include "kir/operators.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace quern::kir {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

double Eval(Op op, double a, double b = 0, double c = 0) { return Row(op).eval(a, b, c); }
int64_t EvalI64(Op op, int64_t a, int64_t b = 0, int64_t c = 0) { return EvalInteger(op, DType::kI64, a, b, c); }

TEST(Operators, NamesAreUnique) {
  for (int i = 0; i < kOpCount; ++i) {
    const OpRow& row = Row(static_cast<Op>(i));
    EXPECT_EQ(static_cast<int>(row.op), i);
    if (row.syntax != OpSyntax::kPrefix) EXPECT_EQ(OpFromName(row.name), row.op) << row.name;
    EXPECT_EQ(row.syntax == OpSyntax::kInfix, row.precedence > 0) << row.name;
    if (row.domain == OpDomain::kFloat || row.domain == OpDomain::kNumeric) EXPECT_NE(row.eval, nullptr) << row.name;
  }
  EXPECT_EQ(OpFromName("nothing"), std::nullopt);
}

TEST(Operators, MinAndMaxPropagateNan) {
  for (Op op : {Op::kMin, Op::kMax}) {
    EXPECT_TRUE(std::isnan(Eval(op, kNan, 1)));
    EXPECT_TRUE(std::isnan(Eval(op, 1, kNan)));
  }
  EXPECT_EQ(Eval(Op::kMin, 2, -3), -3);
  EXPECT_EQ(Eval(Op::kMax, -kInf, -3), -3);
}

TEST(Operators, RoundsHalfToEven) {
  const std::pair<double, double> cases[] = {{0.5, 0},
                                             {1.5, 2},
                                             {2.5, 2},
                                             {-0.5, 0},
                                             {-1.5, -2},
                                             {-2.5, -2},
                                             {2.4999, 2},
                                             {-3.7, -4},
                                             {1e300, 1e300},
                                             {-kInf, -kInf},
                                             {0.49999999999999994, 0}};
  for (const auto& [in, out] : cases) EXPECT_EQ(Eval(Op::kRound, in), out) << in;
  EXPECT_TRUE(std::signbit(Eval(Op::kRound, -0.25)));
  EXPECT_TRUE(std::isnan(Eval(Op::kRound, kNan)));
}

TEST(Operators, ModHasTheSignOfTheDivisor) {
  EXPECT_EQ(EvalI64(Op::kMod, 7, 3), 1);
  EXPECT_EQ(EvalI64(Op::kMod, -7, 3), 2);
  EXPECT_EQ(EvalI64(Op::kMod, 7, -3), -2);
  EXPECT_EQ(EvalI64(Op::kMod, -7, -3), -1);
  EXPECT_EQ(EvalI64(Op::kMod, -6, 3), 0);
  EXPECT_EQ(EvalI64(Op::kMod, 5, 0), 0);
  EXPECT_EQ(EvalI64(Op::kMod, INT64_MIN, -1), 0);
  EXPECT_EQ(EvalInteger(Op::kMod, DType::kU64, -1, 10, 0), 5);  // 2^64 - 1
  EXPECT_EQ(EvalInteger(Op::kMod, DType::kU64, 7, -1, 0), 7);
  EXPECT_EQ(Eval(Op::kMod, -7, 3), 2);
  EXPECT_EQ(Eval(Op::kMod, 7, -3), -2);
  EXPECT_EQ(Eval(Op::kMod, 5.5, 2), 1.5);
}

TEST(Operators, IntegerDivisionTruncates) {
  EXPECT_EQ(EvalI64(Op::kDiv, 7, 2), 3);
  EXPECT_EQ(EvalI64(Op::kDiv, -7, 2), -3);
  EXPECT_EQ(EvalI64(Op::kDiv, 7, 0), 0);
  EXPECT_EQ(EvalI64(Op::kDiv, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(EvalInteger(Op::kDiv, DType::kU64, -2, 2, 0), INT64_MAX);
  EXPECT_EQ(EvalInteger(Op::kDiv, DType::kU64, 5, -1, 0), 0);
}

TEST(Operators, Shifts) {
  EXPECT_EQ(EvalI64(Op::kShl, 1, 63), INT64_MIN);
  EXPECT_EQ(EvalI64(Op::kShl, 1, 64), 0);
  EXPECT_EQ(EvalI64(Op::kShl, 1, -1), 0);
  EXPECT_EQ(EvalI64(Op::kShr, -8, 1), -4);
  EXPECT_EQ(EvalI64(Op::kShr, -8, 64), -1);
  EXPECT_EQ(EvalI64(Op::kShr, 8, 100), 0);
  EXPECT_EQ(EvalInteger(Op::kShl, DType::kI8, 1, 8, 0), 0);
  EXPECT_EQ(EvalInteger(Op::kShr, DType::kI8, -100, 9, 0), -1);
  EXPECT_EQ(EvalInteger(Op::kShr, DType::kU8, 200, 3, 0), 25);
  EXPECT_EQ(EvalInteger(Op::kShr, DType::kU8, 200, 8, 0), 0);
  EXPECT_EQ(EvalInteger(Op::kShr, DType::kU64, -1, 60, 0), 15);
}

TEST(Operators, UnsignedComparison) {
  EXPECT_EQ(EvalInteger(Op::kLt, DType::kU64, -1, 1, 0), 0);
  EXPECT_EQ(EvalInteger(Op::kMax, DType::kU64, -1, 1, 0), -1);
  EXPECT_EQ(EvalInteger(Op::kMin, DType::kI64, -1, 1, 0), -1);
  EXPECT_EQ(EvalInteger(Op::kNot, DType::kBool, 1, 0, 0), 0);
  EXPECT_EQ(EvalInteger(Op::kNot, DType::kI32, 5, 0, 0), ~5);
  EXPECT_EQ(EvalInteger(Op::kSelect, DType::kI32, 0, 3, 4), 4);
}

// On small numbers, where doubles are exact, both forms of an operator agree.
TEST(Operators, IntegerAndDoubleFormsAgree) {
  constexpr uint32_t kSeed = 7;
  std::mt19937 random(kSeed);
  std::uniform_int_distribution<int64_t> any(-50, 50);
  for (int round = 0; round < 2000; ++round) {
    const int64_t a = any(random), b = any(random), c = any(random);
    for (Op op : {Op::kNeg, Op::kAbs, Op::kAdd, Op::kSub, Op::kMul, Op::kMin, Op::kMax, Op::kEq, Op::kNe, Op::kLt,
                  Op::kLe, Op::kSelect}) {
      EXPECT_EQ(EvalI64(op, a, b, c), Eval(op, a, b, c)) << Row(op).name << " " << a << " " << b << " seed " << kSeed;
    }
    if (b != 0) {
      EXPECT_EQ(EvalI64(Op::kMod, a, b), Eval(Op::kMod, a, b)) << a << " % " << b;
      EXPECT_EQ(EvalI64(Op::kDiv, a, b), std::trunc(static_cast<double>(a) / b)) << a << " / " << b;
    }
  }
}

TEST(Operators, Reductions) {
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
    EXPECT_EQ(ReduceOpFromName(Name(op)), op);
    EXPECT_EQ(Eval(CombineOp(op), Identity(op), 3.5), 3.5);
  }
  EXPECT_EQ(ReduceOpFromName("mean"), std::nullopt);
}

}  // namespace
}  // namespace quern::kir
