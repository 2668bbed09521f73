// If: the branch that pred says, and nothing of the other one.
#include "unit/steps/step_case.h"

namespace quern::testing {
namespace {

constexpr const char* kChoose = R"(graph g sym S in 1..16 {
  %0 = Input() {name = "x"} : f32[S, 7]
  %1 = Input() {name = "p"} : bool[]
  %2 = Exp(%0) : f32[S, 7]
  %3:2 = If(%1, %0, %2) : f32[S, 7], f32[7] @"choose"
    then graph then sym S in 1..16 {
      %0 = Input() {name = "x"} : f32[S, 7]
      %1 = Input() {name = "e"} : f32[S, 7]
      %2 = Param() {name = "w"} : f32[7]
      %3 = Mul(%0, %2) : f32[S, 7]
      %4 = Sin(%3) : f32[S, 7]
      %5 = Reduce(%1) {axes = [0], keep_dim = false, op = "sum"} : f32[7]
      return %4, %5
    }
    else graph else sym S in 1..16 {
      %0 = Input() {name = "x"} : f32[S, 7]
      %1 = Input() {name = "e"} : f32[S, 7]
      %2 = Param() {name = "w"} : f32[7]
      %3 = Add(%1, %2) : f32[S, 7]
      return %3, %2
    }
  %4 = Neg(%3.0) : f32[S, 7]
  return %4, %3.1, %2
}
)";

TEST(If, RunsTheBranchThatPredSays) {
  std::vector<Trial> trials;
  for (const bool p : {false, true}) {
    for (const int64_t s : {1, 3, 8, 16}) trials.push_back({{{"S", s}}, {{"p", BytesOf(p)}}});
  }
  CheckGraph(kChoose, trials);
}

}  // namespace
}  // namespace quern::testing
