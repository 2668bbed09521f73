// Products of few terms: which become arithmetic, and what of.
#include <gmock/gmock.h>

#include "absl/strings/str_replace.h"
#include "unit/opt/pass_text.h"

namespace quern::opt {
namespace {

TEST(ShortSums, AreColumnsBesideRows) {
  EXPECT_EQ(After(ShortSums, R"(graph g sym B in 1..8 {
  %0 = Input() {name = "x"} : f32[B, 5, 2]
  %1 = Input() {name = "w"} : f32[2, 7]
  %2 = MatMul(%0, %1) {transpose_b = false} : f32[B, 5, 7]
  return %2
}
)"),
            R"(graph g sym B in 1..8 {
  %0 = Input() {name = "x"} : f32[B, 5, 2]
  %1 = Input() {name = "w"} : f32[2, 7]
  %2 = Constant() hex 00000000 : f32[]
  %3 = Narrow(%0) {axis = 2, length = <1>, start = <0>} : f32[B, 5, 1]
  %4 = Narrow(%1) {axis = 0, length = <1>, start = <0>} : f32[1, 7]
  %5 = Mul(%3, %4) : f32[B, 5, 7]
  %6 = Add(%5, %2) : f32[B, 5, 7]
  %7 = Narrow(%0) {axis = 2, length = <1>, start = <1>} : f32[B, 5, 1]
  %8 = Narrow(%1) {axis = 0, length = <1>, start = <1>} : f32[1, 7]
  %9 = Mul(%7, %8) : f32[B, 5, 7]
  %10 = Add(%9, %6) : f32[B, 5, 7]
  return %10
}
)");
}

// What is turned is copied: each row of the result reads it.
TEST(ShortSums, OfARightSideOfRows) {
  const std::string after = After(ShortSums, R"(graph g {
  %0 = Input() {name = "x"} : f64[5, 3]
  %1 = Input() {name = "w"} : f64[7, 3]
  %2 = MatMul(%0, %1) {transpose_b = true} : f64[5, 7]
  return %2
}
)");
  EXPECT_THAT(after, ::testing::HasSubstr("%3 = Transpose(%1) {perm = [1, 0]} : f64[3, 7]\n  %4 = Cast(%3)"));
}

// Convolutions of three taps read their windows on the way.
TEST(ShortSums, NotOfWindows) {
  for (const bool last : {false, true}) {
    const StatusOr<ir::Graph> graph = ExpandComposites(Parsed(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, $x]
  %1 = Input() {name = "w"} : f32[5, 1, 3]
  %2 = Conv(%0, %1) {groups = $g, channels_last = $l} : f32[1, $y]
  return %2
})",
                                                                                  {{"$x", last ? "17, 1" : "5, 17"},
                                                                                   {"$y", last ? "15, 5" : "5, 15"},
                                                                                   {"$g", last ? "1" : "5"},
                                                                                   {"$l", last ? "true" : "false"}})));
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_THAT(After(ShortSums, ir::Print(*graph)), ::testing::HasSubstr("MatMul"));
  }
}

TEST(ShortSums, OfFloatsAloneAndHalvesOfOneTerm) {
  for (const auto& [x, w, y, k] : {std::tuple("f32", "f32", "f32", "5"),
                                   {"i32", "i32", "i32", "1"},
                                   {"f16", "f16", "f16", "2"},
                                   {"f32", "f16", "f32", "1"},
                                   {"f32", "f32", "f32", "K"}}) {
    ExpectUnchanged(ShortSums, absl::StrReplaceAll(R"(graph g sym K in 1..4 {
  %0 = Input() {name = "x"} : $x[5, $k]
  %1 = Input() {name = "w"} : $w[$k, 7]
  %2 = MatMul(%0, %1) {transpose_b = false} : $y[5, 7]
  return %2
}
)",
                                                   {{"$x", x}, {"$w", w}, {"$y", y}, {"$k", k}}));
  }
}

}  // namespace
}  // namespace quern::opt
