// Sizes that runs find, in every way they run; unit/compiler/counted_test.cc has what else there is to them.
#include "unit/steps/step_case.h"

namespace quern::testing {
namespace {

// Bools of which `count` hold, spread over the whole.
std::vector<uint8_t> Chosen(int64_t size, int64_t count) {
  std::vector<uint8_t> bytes(size);
  for (int64_t i = 0; i < count; ++i) bytes[i * 7 % size] = 1;  // sizes have no factor 7
  return bytes;
}

constexpr int64_t kSizes[] = {1, 8, 17, 37};

std::vector<Trial> TrialsOf(int64_t batch) {
  std::vector<Trial> trials;
  for (const int64_t size : kSizes) {
    for (const int64_t count : {int64_t{0}, size, int64_t{1}, size / 2})
      trials.push_back({{{"B", batch}, {"S", size}}, {{"c", Chosen(size, count)}}});
  }
  return trials;
}

TEST(Counted, ChosenRowsGoThroughProductsAndASoftmax) {
  constexpr std::string_view kText = R"(graph g sym B in 1..5, N in 0.., S in 1..37 {
  %0 = Input() {name = "x"} : f32[B, S, 13]
  %1 = Input() {name = "c"} : bool[S]
  %2:2 = Compress(%0, %1) {axis = 1} : f32[B, S, 13], i64[]
  %3 = Counted(%2.0, %2.1) {axis = 1, size = <N>} : f32[B, N, 13]
  %4 = Param() {name = "w"} : f32[17, 13]
  %5 = MatMul(%3, %4) {transpose_b = true} : f32[B, N, 17]
  %6 = MatMul(%3, %3) {transpose_b = true} : f32[B, N, N]
  %7 = Softmax(%6) {axis = 2} : f32[B, N, N]
  %8 = MatMul(%7, %5) : f32[B, N, 17]
  %9 = Reduce(%8) {axes = [1], keep_dim = false, op = "sum"} : f32[B, 17]
  %10 = MatMul(%9, %4) : f32[B, 13]
  return %8, %7, %9, %10
}
)";
  CheckGraph(kText, TrialsOf(1));
  CheckGraph(kText, TrialsOf(3));
}

TEST(Counted, PlacesOfWhatIsNotZeroPickRows) {
  std::vector<Trial> trials;
  for (const int64_t rows : {1, 3, 11}) {
    const int64_t size = rows * 5;
    for (const int64_t count : {int64_t{0}, size, int64_t{1}, size / 2})
      trials.push_back({{{"S", rows}}, {{"c", Chosen(size, count)}}});
  }
  CheckGraph(R"(graph g sym N in 0..55, S in 1..11 {
  %0 = Input() {name = "c"} : bool[S, 5]
  %1:2 = NonZero(%0) : i64[2, 5*S], i64[]
  %2 = Counted(%1.0, %1.1) {axis = 1, size = <N>} : i64[2, N]
  %3 = Narrow(%2) {axis = 0, start = <0>, length = <1>} : i64[1, N]
  %4 = Reshape(%3) {shape = <N>} : i64[N]
  %5 = Input() {name = "x"} : f32[S, 7]
  %6 = Gather(%5, %4) {axis = 0} : f32[N, 7]
  %7 = Tanh(%6) : f32[N, 7]
  %8 = Concat(%7, %5) {axis = 0} : f32[N + S, 7]
  return %2, %8
}
)",
             std::move(trials));
}

// The second size is found in what the first one cut, behind a product of both and before another; some of the
// launches between them name neither.
TEST(Counted, TwoSizesEachAfterTheOther) {
  std::vector<Trial> trials;
  for (const int64_t size : kSizes) {
    for (const int64_t first : {size, int64_t{0}, size / 2 + 1}) {
      for (const int64_t second : {int64_t{0}, size, size / 3}) {
        trials.push_back({{{"S", size}, {"T", size}}, {{"c", Chosen(size, first)}, {"d", Chosen(size, second)}}});
      }
    }
  }
  CheckGraph(R"(graph g sym K in 0.., M in 0.., N in 0.., S in 1..37, T in 1..37 {
  %0 = Input() {name = "x"} : f32[S, 3]
  %1 = Input() {name = "c"} : bool[S]
  %2 = Input() {name = "y"} : f32[T, 3]
  %3 = Input() {name = "d"} : bool[T]
  %4:2 = Compress(%0, %1) {axis = 0} : f32[S, 3], i64[]
  %5 = Counted(%4.0, %4.1) {axis = 0, size = <M>} : f32[M, 3]
  %6 = MatMul(%5, %2) {transpose_b = true} : f32[M, T]
  %7 = Exp(%2) : f32[T, 3]
  %8:2 = Compress(%7, %3) {axis = 0} : f32[T, 3], i64[]
  %9 = Counted(%8.0, %8.1) {axis = 0, size = <N>} : f32[N, 3]
  %10 = MatMul(%5, %9) {transpose_b = true} : f32[M, N]
  %11 = Softmax(%10) {axis = 0} : f32[M, N]
  %12:2 = NonZero(%5) : i64[2, 3*M], i64[]
  %13 = Counted(%12.0, %12.1) {axis = 1, size = <K>} : i64[2, K]
  %14 = Neg(%13) : i64[2, K]
  %15 = Concat(%5, %9) {axis = 0} : f32[M + N, 3]
  return %6, %11, %14, %15, %7
}
)",
             std::move(trials));
}

// What a loop left is read by launches that are written after it has run; a loop and a branch take what was found.
TEST(Counted, BetweenLoops) {
  std::vector<Trial> trials;
  for (const int64_t size : kSizes) {
    for (const int64_t count : {int64_t{0}, size, size / 2}) {
      for (const uint8_t branch : {uint8_t{0}, uint8_t{1}})
        trials.push_back({{{"S", size}}, {{"c", Chosen(size, count)}, {"p", {branch}}}});
    }
  }
  CheckGraph(R"(graph g sym N in 0.., S in 1..37 {
  %0 = Input() {name = "x"} : f32[S, 3]
  %1 = Input() {name = "h"} : f32[3]
  %2:2 = Scan(%1, %0) {carries = 1, xs = 1, length = <S>} : f32[3], f32[S, 3]
    body graph body sym S in 1..37 {
      %0 = Input() {name = "h"} : f32[3]
      %1 = Input() {name = "x"} : f32[3]
      %2 = Add(%0, %1) : f32[3]
      %3 = Tanh(%2) : f32[3]
      return %3, %2
    }
  %3 = Input() {name = "c"} : bool[S]
  %4:2 = Compress(%2.1, %3) {axis = 0} : f32[S, 3], i64[]
  %5 = Counted(%4.0, %4.1) {axis = 0, size = <N>} : f32[N, 3]
  %6 = Mul(%5, %2.0) : f32[N, 3]
  %7:2 = Scan(%2.0, %6) {carries = 1, xs = 1, length = <N>} : f32[3], f32[N, 3]
    body graph body sym N in 0.. {
      %0 = Input() {name = "h"} : f32[3]
      %1 = Input() {name = "x"} : f32[3]
      %2 = Add(%0, %1) : f32[3]
      %3 = Sin(%2) : f32[3]
      return %3, %2
    }
  %8 = Input() {name = "p"} : bool[]
  %9 = If(%8, %7.1) : f32[N, 3]
    then graph then sym N in 0.. {
      %0 = Input() {name = "x"} : f32[N, 3]
      %1 = Exp(%0) : f32[N, 3]
      return %1
    }
    else graph else sym N in 0.. {
      %0 = Input() {name = "x"} : f32[N, 3]
      %1 = Neg(%0) : f32[N, 3]
      return %1
    }
  return %6, %7.0, %9
}
)",
             std::move(trials));
}

}  // namespace
}  // namespace quern::testing
