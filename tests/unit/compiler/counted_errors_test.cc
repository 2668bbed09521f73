// Graphs whose Counted is an error: a size that is not known where it is named, or not in one place alone.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/counted.h"

namespace quern::testing {
namespace {

void ExpectRefused(std::string_view text, std::string_view why) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  const Status status = graph.ok() ? ir::Verify(*graph) : graph.status();
  EXPECT_NE(std::string(status.message()).find(why), std::string::npos) << status;
}

TEST(Counted, RefusesWhatIsNoSizeOfARun) {
  ExpectRefused(R"(graph g sym N in 0..5 {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Input() {name = "n"} : i64[]
  %2 = Size() {extent = <N>} : i64[]
  %3 = Counted(%0, %1) {axis = 0, size = <N>} : f32[N]
  return %2, %3
})",
                "symbol N");
  ExpectRefused(R"(graph g sym N in 0..5 {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Input() {name = "n"} : i64[]
  %2 = Input() {name = "m"} : i64[]
  %3 = Counted(%0, %1) {axis = 0, size = <N>} : f32[N]
  %4 = Counted(%0, %2) {axis = 0, size = <N>} : f32[N]
  return %3, %4
})",
                "that of another count");
  ExpectRefused(R"(graph g sym N in 0..5 {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Input() {name = "n"} : i64[]
  %2 = Counted(%0, %1) {axis = 1, size = <N>} : f32[N]
  return %2
})",
                "axis");
  ExpectRefused(R"(graph g sym N in 0..5 {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Input() {name = "n"} : i64[]
  %2 = Counted(%0, %1) {axis = 0, size = <2*N>} : f32[2*N]
  return %2
})",
                "one symbol");
  ExpectRefused(R"(graph g sym N in 7..9 {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Input() {name = "n"} : i64[]
  %2 = Counted(%0, %1) {axis = 0, size = <N>} : f32[N]
  return %2
})",
                "size");
}

// A graph around an If whose branches are `then` and `otherwise`, nodes from %2 on over x f32[5] and n i64[], and give
// `result`; `before` and `after` stand beside it.
std::string AroundBranches(const std::string& then, const std::string& otherwise, const std::string& result = "f32[]",
                           const std::string& before = "", const std::string& after = "") {
  const std::string inputs = "      %0 = Input() {name = \"x\"} : f32[5]\n      %1 = Input() {name = \"n\"} : i64[]\n";
  const std::string if_at = absl::StrCat(before.empty() ? 3 : 4);
  return absl::StrCat(
      "graph g sym N in 0..5 {\n  %0 = Input() {name = \"p\"} : bool[]\n  %1 = Input() {name = \"x\"} : f32[5]\n",
      "  %2 = Input() {name = \"n\"} : i64[]\n", before, "  %", if_at, " = If(%0, %1, %2) : ", result,
      "\n    then graph then sym N in 0..5 {\n", inputs, then, "    }\n    else graph else sym N in 0..5 {\n", inputs,
      otherwise, "    }\n", after, "  return %", if_at, "\n}\n");
}

constexpr const char* kFinds = R"(      %2 = Counted(%0, %1) {axis = 0, size = <N>} : f32[N]
      %3 = Reduce(%2) {axes = [0], keep_dim = false, op = "sum"} : f32[]
      return %3
)";
constexpr const char* kFindsNone = R"(      %2 = Reduce(%0) {axes = [0], keep_dim = false, op = "max"} : f32[]
      return %2
)";

TEST(Counted, WhatABodyFindsIsItsOwn) {
  const StatusOr<ir::Graph> graph = ir::Parse(AroundBranches(kFinds, kFindsNone));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(ir::GivenSymbols(*graph).empty());
  EXPECT_TRUE(ir::CountedSizesOf(*graph).empty());
  EXPECT_EQ(ir::AllCountedSizes(*graph), (ir::CountedSizes{{"N", 5}}));
  ExpectRefused(AroundBranches(kFinds, kFinds), "If: symbol N, which else finds, is found elsewhere too");
  ExpectRefused(AroundBranches(kFinds, kFindsNone, "f32[]", "  %3 = Counted(%1, %2) {axis = 0, size = <N>} : f32[N]\n"),
                "If: symbol N, which then finds, is found elsewhere too");
  ExpectRefused(AroundBranches(kFinds, kFindsNone, "f32[]", "  %3 = Size() {extent = <N>} : i64[]\n"),
                "Size: symbol N is named outside of then of %4 (If), which finds it");
  ExpectRefused(AroundBranches(kFinds, kFindsNone, "f32[]", "", "  %4 = Size() {extent = <N>} : i64[]\n"),
                "Size: symbol N is named outside of then of %3 (If), which finds it");
  ExpectRefused(AroundBranches(kFinds, R"(      %2 = Size() {extent = <N>} : i64[]
      %3 = Cast(%2) {to = f32} : f32[]
      return %3
)"),
                "If: symbol N is named outside of then of %3 (If), which finds it");
  ExpectRefused(AroundBranches(R"(      %2 = Counted(%0, %1) {axis = 0, size = <N>} : f32[N]
      return %2
)",
                               R"(      %2 = Iota() {shape = <N>, axis = 0, dtype = f32} : f32[N]
      return %2
)",
                               "f32[N]"),
                "If: symbol N is named outside of then of %3 (If), which finds it");
  ExpectRefused(AroundBranches(R"(      %2 = Size() {extent = <N>} : i64[]
      %3 = Counted(%0, %2) {axis = 0, size = <N>} : f32[N]
      %4 = Reduce(%3) {axes = [0], keep_dim = false, op = "sum"} : f32[]
      return %4
)",
                               kFindsNone),
                "symbol N, which %3 finds,");
}

// A result that is larger by what a trip finds, and a row.
TEST(Counted, NoResultOfALoopHasTheSizeOfATrip) {
  ExpectRefused(R"(graph g sym N in 0..5 {
  %0 = Input() {name = "x"} : f32[3, 5]
  %1 = Input() {name = "n"} : i64[3]
  %2 = Scan(%0, %1) {xs = 2, length = <3>} : f32[3, N]
    body graph body sym N in 0..5 {
      %0 = Input() {name = "x"} : f32[5]
      %1 = Input() {name = "n"} : i64[]
      %2 = Counted(%0, %1) {axis = 0, size = <N>} : f32[N]
      return %2
    }
  return %2
})",
                "Scan: symbol N is named outside of body of %2 (Scan), which finds it");
}

TEST(Counted, GradientsOfALoopThatFindsSizesAreRefused) {
  ExpectRefused(R"(graph g sym N in 0..5 {
  %0 = Input() {name = "h"} : f32[5]
  %1 = Input() {name = "x"} : f32[3, 5]
  %2 = Input() {name = "d"} : f32[5]
  %3:2 = ScanBackward(%0, %1, %2) {carries = 1, xs = 1, length = <3>} : f32[5], f32[3, 5]
    body graph body sym N in 0..5 {
      %0 = Input() {name = "h"} : f32[5]
      %1 = Input() {name = "x"} : f32[5]
      %2:2 = NonZero(%1) : i64[1, 5], i64[]
      %3 = Counted(%1, %2.1) {axis = 0, size = <N>} : f32[N]
      %4 = Reduce(%3) {axes = [0], keep_dim = false, op = "sum"} : f32[]
      %5 = Add(%0, %4) : f32[5]
      return %5
    }
    vjp graph vjp {
      %0 = Input() {name = "h"} : f32[5]
      %1 = Input() {name = "x"} : f32[5]
      %2 = Input() {name = "y"} : f32[5]
      %3 = Input() {name = "d"} : f32[5]
      return %3, %3
    }
  return %3.0
})",
                "ScanBackward: Counted of body is a size that a body finds, which is not supported");
}

}  // namespace
}  // namespace quern::testing
