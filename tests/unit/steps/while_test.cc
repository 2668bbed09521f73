// While: carries from trip to trip, held twice, in place or unchanged; no trip at all; more trips than there may be.
#include "absl/strings/str_replace.h"
#include "unit/steps/step_case.h"

namespace quern::testing {
namespace {

// A count, a vector that changes, one that does not, a weight of the body's own, and a capture.
constexpr const char* kPowers = R"(graph g sym S in 1..16 {
  %0 = Input() {name = "n"} : i64[]
  %1 = Input() {name = "x"} : f32[S, 7]
  %2 = Input() {name = "scale"} : f32[7]
  %3 = Sin(%1) : f32[S, 7]
  %4 = Constant() hex 0000000000000000 : i64[]
  %5:3 = While(%4, %3, %2, %0) {carries = 3, max = 0} : i64[], f32[S, 7], f32[7] @"powers"
    cond graph cond sym S in 1..16 {
      %0 = Input() {name = "i"} : i64[]
      %1 = Input() {name = "x"} : f32[S, 7]
      %2 = Input() {name = "scale"} : f32[7]
      %3 = Input() {name = "n"} : i64[]
      %4 = Lt(%0, %3) : bool[]
      return %4
    }
    body graph body sym S in 1..16 {
      %0 = Input() {name = "i"} : i64[]
      %1 = Input() {name = "x"} : f32[S, 7]
      %2 = Input() {name = "scale"} : f32[7]
      %3 = Input() {name = "n"} : i64[]
      %4 = Constant() hex 0100000000000000 : i64[]
      %5 = Add(%0, %4) : i64[]
      %6 = Param() {name = "w"} : f32[7, 7]
      %7 = MatMul(%1, %6) : f32[S, 7]
      %8 = Tanh(%7) : f32[S, 7]
      %9 = Mul(%8, %2) : f32[S, 7]
      return %5, %9, %2
    }
  %6 = Exp(%5.1) : f32[S, 7]
  return %5.0, %6, %5.2
}
)";

TEST(While, CarriesValuesFromTripToTrip) {
  std::vector<Trial> trials;
  for (const int64_t n : {0, 1, 2, 3, 6}) {
    for (const int64_t s : {1, 5}) trials.push_back({{{"S", s}}, {{"n", BytesOf(n)}}});
  }
  CheckGraph(kPowers, trials);
}

// Two carries change places: neither result is a value of the trip's own.
constexpr const char* kFibonacci = R"(graph g {
  %0 = Input() {name = "n"} : i64[]
  %1 = Constant() hex 0000000000000000 : i64[]
  %2 = Constant() hex 0100000000000000 : i64[]
  %3:3 = While(%0, %1, %2) {carries = 3, max = 0} : i64[], i64[], i64[]
    cond graph cond {
      %0 = Input() {name = "n"} : i64[]
      %1 = Input() {name = "a"} : i64[]
      %2 = Input() {name = "b"} : i64[]
      %3 = Constant() hex 0000000000000000 : i64[]
      %4 = Gt(%0, %3) : bool[]
      return %4
    }
    body graph body {
      %0 = Input() {name = "n"} : i64[]
      %1 = Input() {name = "a"} : i64[]
      %2 = Input() {name = "b"} : i64[]
      %3 = Constant() hex 0100000000000000 : i64[]
      %4 = Sub(%0, %3) : i64[]
      %5 = Add(%1, %2) : i64[]
      return %4, %2, %5
    }
  return %3.1, %3.2
}
)";

TEST(While, CarriesMayChangePlaces) {
  std::vector<Trial> trials;
  for (const int64_t n : {0, 1, 2, 7, 40}) trials.push_back({{}, {{"n", BytesOf(n)}}});
  CheckGraph(kFibonacci, trials);
}

// A cache that the body writes in place, row by row; what the trips leave of it is an output, or the graph's own state.
constexpr const char* kCache = R"(graph g {
  %0 = Input() {name = "n"} : i64[]
  %1 = Input() {name = "cache"} : f32[8, 5]
  %2 = Input() {name = "x"} : f32[1, 5]
  %3 = Constant() hex 0000000000000000 : i64[]
  %4:3 = While(%3, %2, %1, %0) {carries = 3, max = 0} : i64[], f32[1, 5], f32[8, 5] @"fill"
    cond graph cond {
      %0 = Input() {name = "i"} : i64[]
      %1 = Input() {name = "x"} : f32[1, 5]
      %2 = Input() {name = "cache"} : f32[8, 5]
      %3 = Input() {name = "n"} : i64[]
      %4 = Lt(%0, %3) : bool[]
      return %4
    }
    body graph body {
      %0 = Input() {name = "i"} : i64[]
      %1 = Input() {name = "x"} : f32[1, 5]
      %2 = Input() {name = "cache"} : f32[8, 5]
      %3 = Input() {name = "n"} : i64[]
      %4 = Constant() hex 0100000000000000 : i64[]
      %5 = Add(%0, %4) : i64[]
      %6 = Update(%2, %1) {axis = 0, start = <3>} : f32[8, 5]
      %7 = Reduce(%6) {axes = [0], keep_dim = true, op = "sum"} : f32[1, 5]
      %8 = Tanh(%7) : f32[1, 5]
      return %5, %8, %6
    }
  return %4.1, %4.2
EXTRA})";

TEST(While, WritesCachesInPlace) {
  std::vector<Trial> trials;
  for (const int64_t n : {0, 1, 2, 5}) trials.push_back({{}, {{"n", BytesOf(n)}}});
  for (const bool state : {false, true}) {
    const std::string text = absl::StrReplaceAll(kCache, {{"EXTRA", state ? "  donate \"cache\" -> 1\n" : ""}});
    CheckGraph(text, trials);
    // One kernel of the body writes the cache; a state is written where it is, an input after a copy.
    const CompiledGraph compiled = PlanText(text);
    std::string printed = lir::Print(compiled.plan);
    int places = 0;
    for (const lir::Buffer& buffer : compiled.plan.buffers) {
      const bool cache = buffer.home == lir::Home::kArena && buffer.bytes == Extent(8 * 5 * 4);
      places += cache;
    }
    EXPECT_EQ(places, state ? 0 : 1) << printed;
  }
}

}  // namespace
}  // namespace quern::testing
