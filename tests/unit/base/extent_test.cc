// Extents: arithmetic against evaluation, text, bounds.
#include "base/extent.h"

#include <cmath>
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
  for (const char* bad : {"", "2 +", "*3", "a b", "3.5", "a-", "99999999999999999999", "(a"}) {
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
  // Terms that share a factor: B (S - 1) and B (2 - S), whose ranges apart say less.
  EXPECT_EQ((B() * S() - B()).LowerBound(ranges), 1);
  EXPECT_EQ((B() * 10 - B() * S()).LowerBound(ranges), 0);
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

TEST(ExtentTest, QuotientsAreCanonical) {
  EXPECT_EQ((S() * 4 + 8).CeilDividedBy(4), S() + 2);
  EXPECT_EQ(Extent(-7).CeilDividedBy(2), Extent(-3));
  EXPECT_EQ(Extent(-7).FloorDividedBy(2), Extent(-4));
  EXPECT_EQ((S() * 3 - 1).CeilDividedBy(2).ToString(), "SEQ + ceil((SEQ + 1) / 2) - 1");
  // Windows of 3 at every second place: floor((S - 3) / 2) + 1.
  EXPECT_EQ((S() - 3).FloorDividedBy(2) + 1, S().CeilDividedBy(2) - 1);
  EXPECT_EQ((S() * 4 + 5).CeilDividedBy(6), (S() * 2 + 3).CeilDividedBy(3));
  EXPECT_EQ((S() * 4 + 6).CeilDividedBy(6), (S() * 2).CeilDividedBy(3) + 1);
  EXPECT_EQ(S().CeilDividedBy(2).CeilDividedBy(3).ToString(), "ceil(ceil(SEQ / 2) / 3)");
  EXPECT_EQ(*Extent::Parse("floor(SEQ / 2)"), S().FloorDividedBy(2));
  EXPECT_EQ(*Extent::Parse("3*(SEQ - 1)"), S() * 3 - 3);
  EXPECT_EQ((*Extent::Parse("2*ceil((BATCH*SEQ + 1) / 3) - BATCH")).Symbols(),
            (std::vector<std::string>{"BATCH", "SEQ"}));
  EXPECT_EQ(S().CeilDividedBy(2).Substitute("SEQ", B() * 2 + 1), B() + 1);
  EXPECT_EQ((S().CeilDividedBy(2) * 6).DividedBy(S().CeilDividedBy(2) * 2), Extent(3));
  for (const char* bad : {"ceil(SEQ / 0)", "ceil(SEQ / -2)", "ceil(SEQ)", "floor(SEQ / BATCH)", "ceil(/ 2)",
                          "ceil(SEQ / 2", "ceil(SEQ / 2))", "ceil(SEQ / )"}) {
    EXPECT_FALSE(Extent::Parse(bad).ok()) << bad;
  }
  EXPECT_TRUE(Extent::Parse("ceil + floor*2").ok());  // names like any
}

TEST(ExtentTest, SolvesForTheSymbolThatIsUnknown) {
  using Solved = std::optional<std::pair<std::string, int64_t>>;
  EXPECT_EQ(S().SolvedFor(7, {}), Solved({"SEQ", 7}));
  EXPECT_EQ((S() * 2 + 1).SolvedFor(7, {}), Solved({"SEQ", 3}));
  EXPECT_EQ((S() * 2 + 1).SolvedFor(8, {}), Solved({"SEQ", 3}));  // none is exact: the caller sees that 7 is not 8
  EXPECT_EQ((B() * S() * 3 + B()).SolvedFor(26, {{"BATCH", 2}}), Solved({"SEQ", 4}));
  EXPECT_EQ((B() - S()).SolvedFor(2, {{"BATCH", 9}}), Solved({"SEQ", 7}));
  EXPECT_EQ((S().CeilDividedBy(2) + B()).SolvedFor(9, {{"SEQ", 5}}), Solved({"BATCH", 6}));
  EXPECT_EQ(S().SolvedFor(INT64_MAX, {}), Solved({"SEQ", INT64_MAX}));
  EXPECT_EQ((S() - 1).SolvedFor(INT64_MAX, {}), std::nullopt);
  EXPECT_EQ((S() + B()).SolvedFor(7, {}), std::nullopt);
  EXPECT_EQ(S().SolvedFor(7, {{"SEQ", 7}}), std::nullopt);
  EXPECT_EQ(S().CeilDividedBy(2).SolvedFor(7, {}), std::nullopt);
  EXPECT_EQ((S().CeilDividedBy(2) + S()).SolvedFor(7, {}), std::nullopt);
  EXPECT_EQ((S() * S()).SolvedFor(9, {}), std::nullopt);
  EXPECT_EQ((B() * S()).SolvedFor(9, {{"BATCH", 0}}), std::nullopt);
}

// What bounds know of 2*ceil(S / 2) beside S: more than the ends of each.
TEST(ExtentTest, BoundsOfQuotients) {
  const SymbolRanges ranges = {{"SEQ", {1, 1000}}};
  const Extent half = S().CeilDividedBy(2);
  EXPECT_TRUE((half * 2).ProvablyAtLeast(S(), ranges));
  EXPECT_TRUE((S() + 1).ProvablyAtLeast(half * 2, ranges));
  EXPECT_FALSE(S().ProvablyAtLeast(half * 2, ranges));
  EXPECT_EQ(half.LowerBound(ranges), 1);
  EXPECT_EQ(half.UpperBound(ranges), 500);
  EXPECT_EQ(half.UpperBound({}), std::nullopt);
  // The last window of 3 at stride 2 ends in the line.
  const Extent windows = (S() - 3).FloorDividedBy(2) + 1;
  EXPECT_TRUE(S().ProvablyAtLeast((windows - 1) * 2 + 3, ranges));
  EXPECT_TRUE((B() * S()).ProvablyAtLeast(B() * S().FloorDividedBy(3) * 3, {}));
}

// Sums of quotients of sums of quotients, deeper than any op makes them, have no value; nor do they take memory.
TEST(ExtentTest, DeepQuotientsHaveNoValue) {
  Extent deep = S();
  for (int i = 0; i < 100; ++i) deep = (deep + B()).CeilDividedBy(7) + S();
  EXPECT_EQ(deep.Evaluate({{"SEQ", 3}, {"BATCH", 2}}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_LT(deep.ToString().size(), 200u);
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "ceil(";
  EXPECT_FALSE(Extent::Parse(text).ok());
}

TEST(ExtentTest, QuotientsAgreeWithEvaluation) {
  constexpr uint32_t kSeed = 130363;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  auto number = [&](int low, int high) { return static_cast<int64_t>(random() % (high - low + 1)) + low; };
  const SymbolRanges ranges = {{"SEQ", {0, 29}}, {"BATCH", {2, 11}}};
  const auto floor = [](int64_t value, int64_t by) {
    return static_cast<int64_t>(std::floor(static_cast<double>(value) / static_cast<double>(by)));
  };
  for (int round = 0; round < 2000; ++round) {
    const Binding binding = {{"SEQ", number(0, 29)}, {"BATCH", number(2, 11)}};
    Extent extent = S() * number(-5, 5) + B() * number(-5, 5) + number(-20, 20);
    int64_t value = *extent.Evaluate(binding);
    for (int depth = static_cast<int>(number(1, 4)); depth > 0; --depth) {
      const int64_t by = number(1, 9), times = number(-3, 3), more = number(-9, 9);
      const bool up = number(0, 1) == 1;
      extent = (up ? extent.CeilDividedBy(by) : extent.FloorDividedBy(by)) * times + S() * more;
      value = (up ? -floor(-value, by) : floor(value, by)) * times + binding.at("SEQ") * more;
    }
    ASSERT_EQ(*extent.Evaluate(binding), value) << extent.ToString();
    ASSERT_EQ(*Extent::Parse(extent.ToString()), extent) << extent.ToString();
    ASSERT_LE(*extent.LowerBound(ranges), value) << extent.ToString();
    ASSERT_GE(*extent.UpperBound(ranges), value) << extent.ToString();
    const Extent fixed = extent.Substitute("BATCH", binding.at("BATCH"));
    ASSERT_EQ(*fixed.Evaluate(binding), value) << extent.ToString();
    ASSERT_EQ(fixed.Substitute("SEQ", binding.at("SEQ")), Extent(value)) << extent.ToString();
  }
}

}  // namespace
}  // namespace quern
