// Scan: rows in, rows out, a carry between them; forwards and backwards, and no row at all.
#include "absl/strings/str_replace.h"
#include "unit/steps/step_case.h"

namespace quern::testing {
namespace {

constexpr const char* kDecay = R"(graph g sym S in 0..16 {
  %0 = Input() {name = "state"} : f32[7]
  %1 = Input() {name = "x"} : f32[S, 7]
  %2 = Input() {name = "b"} : f32[S, 3, 7]
  %3 = Input() {name = "a"} : f32[7]
  %4 = Neg(%1) : f32[S, 7]
  %5:3 = Scan(%0, %4, %2, %3) {carries = 1, length = <S>, reverse = false, xs = 2} : f32[7], f32[S, 7], f32[S, 3]
    body graph body {
      %0 = Input() {name = "h"} : f32[7]
      %1 = Input() {name = "x"} : f32[7]
      %2 = Input() {name = "b"} : f32[3, 7]
      %3 = Input() {name = "a"} : f32[7]
      %4 = Mul(%0, %3) : f32[7]
      %5 = Add(%4, %1) : f32[7]
      %6 = Mul(%2, %5) : f32[3, 7]
      %7 = Reduce(%6) {axes = [1], keep_dim = false, op = "sum"} : f32[3]
      return %5, %5, %7
    }
  %6 = Tanh(%5.1) : f32[S, 7]
  return %5.0, %6, %5.2
}
)";

TEST(Scan, CarriesFromRowToRow) {
  std::vector<Trial> trials;
  for (const int64_t s : {0, 1, 2, 5, 16}) trials.push_back({{{"S", s}}});
  CheckGraph(kDecay, trials);
  CheckGraph(absl::StrReplaceAll(kDecay, {{"reverse = false", "reverse = true"}}), trials);
}

}  // namespace
}  // namespace quern::testing
