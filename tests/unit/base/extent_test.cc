// Extents: arithmetic against evaluation, text, bounds.
#include "base/extent.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace quern {
namespace {

const Extent& B() {
  static const Extent extent = Extent::Symbol("BATCH");
  return extent;
}
const Extent& S() {
  static const Extent extent = Extent::Symbol("SEQ");
  return extent;
}

TEST(ExtentTest, CanonicalForm) {
  EXPECT_EQ(B() * S() * 2 + S() + 3, Extent(3) + S() + S() * B() + B() * S());
  EXPECT_EQ(S() - S(), Extent(0));
  EXPECT_TRUE((S() - S() + 5).is_constant());
  EXPECT_EQ((S() - S() + 5).constant(), 5);
  EXPECT_EQ(Extent(0).constant(), 0);
  EXPECT_EQ((B() * 2 - S() + 1).Symbols(), (std::vector<std::string>{"BATCH", "SEQ"}));
}

TEST(ExtentTest, TextRoundTrips) {
  const std::pair<Extent, const char*> cases[] = {
      {0, "0"},
      {7, "7"},
      {-7, "-7"},
      {S(), "SEQ"},
      {S() * -1, "-SEQ"},
      {B() * S() * 2 + S() + 3, "2*BATCH*SEQ + SEQ + 3"},
      {S() * -3 - 4, "-3*SEQ - 4"},
      {B() - S(), "BATCH - SEQ"},
  };
  for (const auto& [extent, text] : cases) {
    EXPECT_EQ(extent.ToString(), text);
    const auto parsed = Extent::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, extent) << text;
  }
  EXPECT_EQ(*Extent::Parse(" 2 * SEQ*3+ 1 -SEQ"), S() * 5 + 1);
  for (const char* bad : {"", "2 +", "*3", "a b", "3.5", "a-", "99999999999999999999", "(a)"}) {
    EXPECT_FALSE(Extent::Parse(bad).ok()) << bad;
  }
  EXPECT_EQ(Extent::Parse("2 * ").status().message(), "bad extent \"2 * \" at character 5");
}

TEST(ExtentTest, Evaluates) {
  const Extent extent = B() * S() * 2 - S() + 3;
  EXPECT_EQ(*extent.Evaluate({{"BATCH", 5}, {"SEQ", 7}}), 66);
  EXPECT_EQ(extent.Evaluate({{"BATCH", 5}}).status().message(), "symbol SEQ is not bound");
  EXPECT_EQ(extent.Evaluate({{"BATCH", INT64_MAX}, {"SEQ", 7}}).status().message(),
            "extent 2*BATCH*SEQ - SEQ + 3 overflows 64 bits");
  EXPECT_EQ((S() + S()).Evaluate({{"SEQ", INT64_MAX}}).status().message(), "extent 2*SEQ overflows 64 bits");
}

TEST(ExtentTest, Divides) {
  EXPECT_EQ((B() * S() * 6 + S() * 4).DividedBy(S() * 2), B() * 3 + 2);
  EXPECT_EQ((B() * 6 + 3).DividedBy(3), B() * 2 + 1);
  EXPECT_EQ((B() * 6 + 3).DividedBy(2), std::nullopt);
  EXPECT_EQ((B() * 6 + 3).DividedBy(B()), std::nullopt);
  EXPECT_EQ((B() * 6 + 3).DividedBy(0), std::nullopt);
  EXPECT_EQ((B() * 6 + 3).DividedBy(B() * 2 + 1), Extent(3));
  EXPECT_EQ((B() * 6 + 4).DividedBy(B() * 2 + 1), std::nullopt);
  EXPECT_EQ(Extent(0).DividedBy(7), Extent(0));
}

TEST(ExtentTest, Substitutes) {
  EXPECT_EQ((B() * S() + S()).Substitute("SEQ", B() + 1), B() * B() + B() * 2 + 1);
  EXPECT_EQ((B() + 1).Substitute("SEQ", 9), B() + 1);
}

TEST(ExtentTest, Bounds) {
  const SymbolRanges ranges = {{"SEQ", {2, 10}}, {"BATCH", {1, INT64_MAX}}};
  EXPECT_EQ((S() * 3 - 1).LowerBound(ranges), 5);
  EXPECT_EQ((S() * 3 - 1).UpperBound(ranges), 29);
  EXPECT_EQ((Extent(4) - S()).LowerBound(ranges), -6);
  EXPECT_EQ((B() + S()).LowerBound(ranges), 3);
  EXPECT_EQ((B() + S()).UpperBound(ranges), std::nullopt);
  EXPECT_EQ((S() - B()).LowerBound(ranges), std::nullopt);
  EXPECT_EQ(Extent::Symbol("other").LowerBound(ranges), 1);
  EXPECT_TRUE((S() * 5).ProvablyAtLeast(S() + 8, ranges));
  EXPECT_FALSE((S() * 5).ProvablyAtLeast(S() + 9, ranges));
}

// Sizes come from text, so any number may: what leaves 64 bits has no value and no bounds, whatever is done to it
// afterwards.
TEST(ExtentTest, OverflowSticks) {
  const SymbolRanges ranges = {{"SEQ", {2, 10}}};
  const Extent large = Extent(int64_t{1} << 62), largest = Extent(INT64_MAX - 1);
  EXPECT_EQ(*largest.Evaluate({}), INT64_MAX - 1);
  for (const Extent& extent :
       {large + large, largest + 1, large * 4, large * S() * 4, Extent(0) - large - large - large,
        large * large - large * large, large * -4, Extent(INT64_MIN), (largest + 1) * -1,
        *Extent::Parse("4611686018427387904*4611686018427387904*SEQ")}) {
    EXPECT_EQ(extent.Evaluate({{"SEQ", 3}}).status().code(), absl::StatusCode::kOutOfRange) << extent.ToString();
    EXPECT_EQ(extent.LowerBound(ranges), std::nullopt) << extent.ToString();
    EXPECT_EQ(extent.UpperBound(ranges), std::nullopt) << extent.ToString();
    EXPECT_EQ(extent.DividedBy(2), std::nullopt) << extent.ToString();
    EXPECT_FALSE(extent.ProvablyAtLeast(0, ranges)) << extent.ToString();
  }
  EXPECT_EQ(large * large * 0, Extent(0));
}

// Random polynomials: arithmetic commutes with evaluation, and no value leaves the bounds.
TEST(ExtentTest, ArithmeticAgreesWithEvaluation) {
  constexpr uint32_t kSeed = 104729;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  auto number = [&](int low, int high) { return static_cast<int64_t>(random() % (high - low + 1)) + low; };
  auto polynomial = [&] {
    Extent extent(number(-9, 9));
    for (int i = 0; i < 2; ++i) {
      extent = extent + B() * number(-5, 5) + S() * number(-5, 5) + B() * S() * number(-3, 3);
    }
    return extent;
  };
  const SymbolRanges ranges = {{"SEQ", {1, 13}}, {"BATCH", {2, 11}}};
  for (int round = 0; round < 500; ++round) {
    const Extent a = polynomial(), b = polynomial();
    const Binding binding = {{"SEQ", number(1, 13)}, {"BATCH", number(2, 11)}};
    const int64_t x = *a.Evaluate(binding), y = *b.Evaluate(binding);
    ASSERT_EQ(*(a + b).Evaluate(binding), x + y);
    ASSERT_EQ(*(a - b).Evaluate(binding), x - y);
    ASSERT_EQ(*(a * b).Evaluate(binding), x * y);
    ASSERT_EQ(*Extent::Parse(a.ToString()), a) << a.ToString();
    ASSERT_LE(*a.LowerBound(ranges), x) << a.ToString();
    ASSERT_GE(*a.UpperBound(ranges), x) << a.ToString();
    if (const auto quotient = (a * 3).DividedBy(3)) ASSERT_EQ(*quotient, a);
  }
}

}  // namespace
}  // namespace quern
