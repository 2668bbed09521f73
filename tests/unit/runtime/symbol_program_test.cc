// Polynomials and index expressions over the sizes of a run, against values worked out by hand.
#include "runtime/symbol_program.h"

#include <gtest/gtest.h>

#include "kir/build.h"

namespace quern {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

const std::vector<std::string> kNames = {"A", "S"};

TEST(SymbolProgram, PolynomialsWithQuotients) {
  const Extent s = Extent::Symbol("S"), a = Extent::Symbol("A");
  const StatusOr<Polynomial> polynomial = Polynomial::Compile(a * s * 3 + (s + 1).CeilDividedBy(4) - 7, kNames);
  ASSERT_TRUE(polynomial.ok()) << polynomial.status();
  const int64_t values[] = {5, 9};
  EXPECT_EQ(polynomial->Evaluate(values), 5 * 9 * 3 + 3 - 7);
  EXPECT_EQ(polynomial->EvaluateChecked(values), 5 * 9 * 3 + 3 - 7);
  const int64_t large[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(polynomial->EvaluateChecked(large), std::nullopt);
  EXPECT_FALSE(Polynomial::Compile(Extent::Symbol("T"), kNames).ok());
}

TEST(SymbolProgram, IndexExpressions) {
  const kir::ExprRef a = kb::Ref("A"), s = kb::Ref("S");
  // Each operator's operands in their order, a select's arms too.
  const kir::ExprRef expr =
      kb::Select(kb::Call(kir::Op::kLt, {s, kb::Int(5)}), s * 2.0 - a, kb::Max(s / a, kb::Int(3)) % 4.0);
  const StatusOr<IndexProgram> program = IndexProgram::Compile(expr, kNames);
  ASSERT_TRUE(program.ok()) << program.status();
  for (const auto& [av, sv] : {std::pair<int64_t, int64_t>{7, 3}, {7, 4}, {7, 5}, {2, 9}, {1, 23}}) {
    const int64_t values[] = {av, sv};
    EXPECT_EQ(program->Evaluate(values), sv < 5 ? sv * 2 - av : std::max<int64_t>(sv / av, 3) % 4) << av << " " << sv;
  }
}

}  // namespace
}  // namespace quern
