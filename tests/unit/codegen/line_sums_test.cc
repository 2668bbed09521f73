// What lines of results read of one image is the same expression, and sums are in the order of its lines.
#include "codegen/line_sums.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kir/describe.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

TEST(LineSums, LinesShareTheImage) {
  const kir::ExprRef q = kb::Ref("q"), c = kb::Ref("c");
  std::vector<LineTerm> terms;
  for (int line = 0; line < 2; ++line) {
    for (int h = 0; h < 3; ++h) {
      const kir::ExprRef at = (q * 2.0 + static_cast<double>(line)) * 2.0 + 2.0 * h - 1.0;
      terms.push_back({line + h, line, kb::At("w", DType::kF32, {kb::Int(h)}), kb::At("x", DType::kF32, {at, c})});
    }
  }
  kir::Block block;
  const std::vector<kir::ExprRef> sums = SumLines(terms, 2, block);
  std::string text;
  for (const kir::StmtRef& stmt : block) absl::StrAppend(&text, kir::Describe(*stmt), "\n");
  EXPECT_EQ(text, R"(let a0_0 = contract(w[0] * x[q * 4 + -1, c])
let a0_1 = contract(a0_0 + w[1] * x[q * 4 + 1, c])
let a1_0 = contract(w[0] * x[q * 4 + 1, c])
let a0_2 = contract(a0_1 + w[2] * x[q * 4 + 3, c])
let a1_1 = contract(a1_0 + w[1] * x[q * 4 + 3, c])
let a1_2 = contract(a1_1 + w[2] * x[q * 4 + 5, c])
)");
  EXPECT_TRUE(kir::IsName(sums[0], "a0_2"));
  EXPECT_TRUE(kir::IsName(sums[1], "a1_2"));
}

// An index that is no polynomial stays as it is.
TEST(LineSums, OtherIndicesStay) {
  kir::Block block;
  const kir::ExprRef right = kb::At("x", DType::kF32, {kb::Ref("q") / 2.0 + 1.0 - 1.0});
  SumLines({{0, 0, kb::Num(2), right}}, 1, block);
  ASSERT_EQ(block.size(), 1u);
  EXPECT_NE(kir::Describe(*block[0]).find("x[q / 2 + 1 - 1]"), std::string::npos) << kir::Describe(*block[0]);
}

}  // namespace
}  // namespace quern::codegen
