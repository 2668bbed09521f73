// Sizes that trips and branches find, in every way they run: another one each time, and none that is known outside.
#include "unit/steps/step_case.h"

namespace quern::testing {
namespace {

constexpr int64_t kSizes[] = {1, 8, 17, 37};

// Bools of `rows` rows, of which row r has `counts[r]` that hold, spread over it.
std::vector<uint8_t> Chosen(int64_t size, const std::vector<int64_t>& counts) {
  std::vector<uint8_t> bytes(size * counts.size());
  for (size_t r = 0; r < counts.size(); ++r) {
    for (int64_t i = 0; i < counts[r]; ++i) bytes[r * size + i * 7 % size] = 1;  // sizes have no factor 7
  }
  return bytes;
}

// Rows of none, all, one and some, in another order each.
std::vector<std::vector<int64_t>> CountsOf(int64_t size) {
  return {{0, size, 1, size / 2, size}, {size, 0, 0, size / 3 + 1, 0}, {size / 2, size}, {0}, {}};
}

// What is found is cut, goes through a product and a sum, and is put back where it was.
TEST(CountedInBodies, EachRowOfAScanHasItsOwn) {
  std::vector<Trial> trials;
  for (const int64_t size : kSizes) {
    for (const std::vector<int64_t>& counts : CountsOf(size))
      trials.push_back({{{"S", size}, {"T", static_cast<int64_t>(counts.size())}}, {{"c", Chosen(size, counts)}}});
  }
  CheckGraph(R"(graph g sym N in 0.., S in 1..37, T in 0..9 {
  %0 = Input() {name = "h"} : f32[3]
  %1 = Input() {name = "x"} : f32[T, S, 3]
  %2 = Input() {name = "c"} : bool[T, S]
  %3 = Input() {name = "w"} : f32[3, 11]
  %4:3 = Scan(%0, %1, %2, %3) {carries = 1, xs = 2, length = <T>} : f32[3], f32[T, 11], f32[T, S, 3]
    body graph body sym N in 0.., S in 1..37, T in 0..9 {
      %0 = Input() {name = "h"} : f32[3]
      %1 = Input() {name = "x"} : f32[S, 3]
      %2 = Input() {name = "c"} : bool[S]
      %3 = Input() {name = "w"} : f32[3, 11]
      %4:2 = Compress(%1, %2) {axis = 0} : f32[S, 3], i64[]
      %5 = Counted(%4.0, %4.1) {axis = 0, size = <N>} : f32[N, 3]
      %6 = Add(%5, %0) : f32[N, 3]
      %7 = MatMul(%6, %3) : f32[N, 11]
      %8 = Reduce(%7) {axes = [0], keep_dim = false, op = "sum"} : f32[11]
      %9 = Softmax(%6) {axis = 0} : f32[N, 3]
      %10 = Mul(%9, %5) : f32[N, 3]
      %11 = Reduce(%10) {axes = [0], keep_dim = false, op = "sum"} : f32[3]
      %12 = Tanh(%11) : f32[3]
      %13:2 = NonZero(%2) : i64[1, S], i64[]
      %14 = Counted(%13.0, %4.1) {axis = 1, size = <N>} : i64[1, N]
      %15 = Transpose(%14) {perm = [1, 0]} : i64[N, 1]
      %16 = Neg(%1) : f32[S, 3]
      %17 = ScatterND(%16, %15, %6) {reduction = "none"} : f32[S, 3]
      return %12, %8, %17
    }
  return %4.0, %4.1, %4.2
}
)",
             std::move(trials));
}

// Trip i finds i, capped; a branch in it finds another one in what was cut, the other branch one of its own, behind
// which it reads the carry.
TEST(CountedInBodies, BranchesInALoopFindFurtherOnes) {
  std::vector<Trial> trials;
  for (const int64_t size : kSizes) {
    for (const int64_t trips : {int64_t{0}, int64_t{1}, size + 2, int64_t{4}}) {
      std::vector<uint8_t> most(8);
      std::memcpy(most.data(), &trips, 8);
      trials.push_back({{{"S", size}}, {{"n", most}}});
    }
  }
  CheckGraph(R"(graph g sym K in 0.., M in 0.., N in 0.., S in 1..37 {
  %0 = Constant() hex 0000000000000000 : i64[]
  %1 = Input() {name = "x"} : f32[S, 3]
  %2 = Input() {name = "n"} : i64[]
  %3 = Input() {name = "h"} : f32[S, 3]
  %4:2 = While(%0, %3, %1, %2) {carries = 2} : i64[], f32[S, 3]
    cond graph cond sym K in 0.., M in 0.., N in 0.., S in 1..37 {
      %0 = Input() {name = "i"} : i64[]
      %1 = Input() {name = "h"} : f32[S, 3]
      %2 = Input() {name = "x"} : f32[S, 3]
      %3 = Input() {name = "n"} : i64[]
      %4 = Lt(%0, %3) : bool[]
      return %4
    }
    body graph body sym K in 0.., M in 0.., N in 0.., S in 1..37 {
      %0 = Input() {name = "i"} : i64[]
      %1 = Input() {name = "h"} : f32[S, 3]
      %2 = Input() {name = "x"} : f32[S, 3]
      %3 = Input() {name = "n"} : i64[]
      %4 = Constant() hex 0100000000000000 : i64[]
      %5 = Add(%0, %4) : i64[]
      %6 = Iota() {shape = <S>, axis = 0, dtype = i64} : i64[S]
      %7 = Lt(%6, %0) : bool[S]
      %8:2 = Compress(%2, %7) {axis = 0} : f32[S, 3], i64[]
      %9 = Counted(%8.0, %8.1) {axis = 0, size = <N>} : f32[N, 3]
      %10 = Constant() hex 0300000000000000 : i64[]
      %11 = Mod(%0, %10) : i64[]
      %12 = Lt(%11, %4) : bool[]
      %13 = If(%12, %9, %1) : f32[S, 3]
        then graph then sym K in 0.., M in 0.., N in 0.., S in 1..37 {
          %0 = Input() {name = "y"} : f32[N, 3]
          %1 = Input() {name = "h"} : f32[S, 3]
          %2 = Constant() hex 00000000 : f32[]
          %3 = Neg(%2) : f32[]
          %4 = Lt(%0, %3) : bool[N, 3]
          %5:2 = NonZero(%4) : i64[2, 3*N], i64[]
          %6 = Counted(%5.0, %5.1) {axis = 1, size = <M>} : i64[2, M]
          %7 = Transpose(%6) {perm = [1, 0]} : i64[M, 2]
          %8 = GatherND(%1, %7) : f32[M]
          %9 = Exp(%8) : f32[M]
          %10 = ScatterND(%1, %7, %9) {reduction = "none"} : f32[S, 3]
          return %10
        }
        else graph else sym K in 0.., M in 0.., N in 0.., S in 1..37 {
          %0 = Input() {name = "y"} : f32[N, 3]
          %1 = Input() {name = "h"} : f32[S, 3]
          %2 = Reshape(%1) {shape = <3*S>} : f32[3*S]
          %3:5 = Unique(%2) : f32[3*S], i64[3*S], i64[3*S], i64[3*S], i64[]
          %4 = Counted(%3.0, %3.4) {axis = 0, size = <K>} : f32[K]
          %5 = Reduce(%4) {axes = [0], keep_dim = false, op = "mean"} : f32[]
          %6 = Reduce(%0) {axes = [0], keep_dim = false, op = "sum"} : f32[3]
          %7 = Add(%6, %5) : f32[3]
          %8 = Tanh(%7) : f32[3]
          %9 = Narrow(%2) {axis = 0, start = <K>, length = <3*S - K>} : f32[3*S - K]
          %10 = Reduce(%9) {axes = [0], keep_dim = false, op = "sum"} : f32[]
          %11 = Tanh(%10) : f32[]
          %12 = Mul(%8, %11) : f32[3]
          %13 = Sub(%1, %12) : f32[S, 3]
          return %13
        }
      return %5, %13
    }
  return %4.0, %4.1
}
)",
             std::move(trials));
}

// A loop over as many rows as the trip around it found, whose rows find others; views that begin where a found size
// says, of a carry that changes its place and of rows.
TEST(CountedInBodies, LoopsOverWhatATripFound) {
  std::vector<Trial> trials;
  for (const int64_t size : kSizes) {
    for (const std::vector<int64_t>& counts : CountsOf(size))
      trials.push_back({{{"S", size}, {"T", static_cast<int64_t>(counts.size())}}, {{"c", Chosen(size, counts)}}});
  }
  CheckGraph(R"(graph g sym M in 0.., N in 0.., S in 1..37, T in 0..9 {
  %0 = Input() {name = "h"} : f32[2*S, 3]
  %1 = Input() {name = "x"} : f32[T, 2*S, 3]
  %2 = Input() {name = "c"} : bool[T, S]
  %3:2 = Scan(%0, %1, %2) {carries = 1, xs = 2, length = <T>, reverse = true} : f32[2*S, 3], f32[T, 3]
    body graph body sym M in 0.., N in 0.., S in 1..37, T in 0..9 {
      %0 = Input() {name = "h"} : f32[2*S, 3]
      %1 = Input() {name = "x"} : f32[2*S, 3]
      %2 = Input() {name = "c"} : bool[S]
      %3 = Narrow(%0) {axis = 0, start = <0>, length = <S>} : f32[S, 3]
      %4:2 = Compress(%3, %2) {axis = 0} : f32[S, 3], i64[]
      %5 = Counted(%4.0, %4.1) {axis = 0, size = <N>} : f32[N, 3]
      %6 = Narrow(%0) {axis = 0, start = <N>, length = <S>} : f32[S, 3]
      %7 = Narrow(%1) {axis = 0, start = <N>, length = <S>} : f32[S, 3]
      %8 = Mul(%6, %7) : f32[S, 3]
      %9 = Sin(%7) : f32[S, 3]
      %10 = Concat(%8, %9) {axis = 0} : f32[2*S, 3]
      %11 = Reduce(%9) {axes = [0], keep_dim = false, op = "sum"} : f32[3]
      %12:2 = Scan(%11, %5) {carries = 1, xs = 1, length = <N>} : f32[3], f32[N]
        body graph inner sym M in 0.., N in 0.., S in 1..37, T in 0..9 {
          %0 = Input() {name = "h"} : f32[3]
          %1 = Input() {name = "y"} : f32[3]
          %2 = Lt(%0, %1) : bool[3]
          %3:2 = Compress(%1, %2) {axis = 0} : f32[3], i64[]
          %4 = Counted(%3.0, %3.1) {axis = 0, size = <M>} : f32[M]
          %5 = Mul(%4, %4) : f32[M]
          %6 = Reduce(%5) {axes = [0], keep_dim = false, op = "sum"} : f32[]
          %7 = Sub(%1, %6) : f32[3]
          %8 = Tanh(%7) : f32[3]
          return %8, %6
        }
      %13 = Mul(%12.1, %12.1) : f32[N]
      %14 = Reduce(%13) {axes = [0], keep_dim = false, op = "sum"} : f32[]
      %15 = Add(%12.0, %14) : f32[3]
      return %10, %15
    }
  return %3.0, %3.1
}
)",
             std::move(trials));
}

// Two that have to be one, in a trip; and one that is found around the loop.
TEST(CountedInBodies, TwoOfATripGoTogetherBesideOneThatIsKnown) {
  std::vector<Trial> trials;
  for (const int64_t size : kSizes) {
    for (const std::vector<int64_t>& counts : CountsOf(size)) {
      std::vector<int64_t> around = {size / 2};
      trials.push_back({{{"S", size}, {"T", static_cast<int64_t>(counts.size())}},
                        {{"a", Chosen(size, around)}, {"c", Chosen(size, counts)}, {"d", Chosen(size, counts)}}});
    }
  }
  CheckGraph(R"(graph g sym K in 0.., M in 0.., N in 0.., S in 1..37, T in 0..9 {
  %0 = Input() {name = "y"} : f32[S]
  %1 = Input() {name = "a"} : bool[S]
  %2:2 = Compress(%0, %1) {axis = 0} : f32[S], i64[]
  %3 = Counted(%2.0, %2.1) {axis = 0, size = <K>} : f32[K]
  %4 = Input() {name = "x"} : f32[T, S]
  %5 = Input() {name = "c"} : bool[T, S]
  %6 = Input() {name = "d"} : bool[T, S]
  %7:2 = Scan(%3, %4, %5, %6, %0) {carries = 1, xs = 3, length = <T>} : f32[K], f32[T, K]
    body graph body sym K in 0.., M in 0.., N in 0.., S in 1..37, T in 0..9 {
      %0 = Input() {name = "h"} : f32[K]
      %1 = Input() {name = "x"} : f32[S]
      %2 = Input() {name = "c"} : bool[S]
      %3 = Input() {name = "d"} : bool[S]
      %4 = Input() {name = "y"} : f32[S]
      %5:2 = Compress(%1, %2) {axis = 0} : f32[S], i64[]
      %6 = Counted(%5.0, %5.1) {axis = 0, size = <M>} : f32[M]
      %7:2 = Compress(%4, %3) {axis = 0} : f32[S], i64[]
      %8 = Counted(%7.0, %7.1) {axis = 0, size = <N>} : f32[N]
      %9 = Add(%6, %8) : f32[M]
      %10 = Reshape(%9) {shape = <M, 1>} : f32[M, 1]
      %11 = Mul(%10, %0) : f32[M, K]
      %12 = Reduce(%11) {axes = [0], keep_dim = false, op = "sum"} : f32[K]
      %13 = Tanh(%12) : f32[K]
      return %13, %12
    }
  %8 = Exp(%7.0) : f32[K]
  return %7.1, %8
}
)",
             std::move(trials));
}

// A cache that a loop writes in place, beside a size that the loop finds; a branch that finds one or does not run.
TEST(CountedInBodies, BesideWhatIsWrittenInPlace) {
  std::vector<Trial> trials;
  for (const int64_t size : kSizes) {
    for (const std::vector<int64_t>& counts : CountsOf(size)) {
      if (counts.size() != 5) continue;
      for (const uint8_t branch : {uint8_t{0}, uint8_t{1}})
        trials.push_back({{{"S", size}}, {{"c", Chosen(size, counts)}, {"p", {branch}}}});
    }
  }
  CheckGraph(R"(graph g sym M in 0.., N in 0.., S in 1..37 {
  %0 = Input() {name = "cache"} : f32[5, 3]
  %1 = Input() {name = "x"} : f32[S, 3]
  %2 = Input() {name = "c"} : bool[5, S]
  %3 = Iota() {shape = <5>, axis = 0, dtype = i32} : i32[5]
  %4 = Scan(%0, %2, %3, %1) {carries = 1, xs = 2, length = <5>} : f32[5, 3]
    body graph body sym M in 0.., N in 0.., S in 1..37 {
      %0 = Input() {name = "cache"} : f32[5, 3]
      %1 = Input() {name = "c"} : bool[S]
      %2 = Input() {name = "i"} : i32[]
      %3 = Input() {name = "x"} : f32[S, 3]
      %4:2 = Compress(%3, %1) {axis = 0} : f32[S, 3], i64[]
      %5 = Counted(%4.0, %4.1) {axis = 0, size = <N>} : f32[N, 3]
      %6 = Reduce(%5) {axes = [0], keep_dim = true, op = "sum"} : f32[1, 3]
      %7 = Sin(%6) : f32[1, 3]
      %8 = Reshape(%2) {shape = <1>} : i32[1]
      %9 = Update(%0, %7, %8) {axis = 0} : f32[5, 3]
      return %9
    }
  %5 = Input() {name = "p"} : bool[]
  %6 = If(%5, %4) : f32[3]
    then graph then sym M in 0.., N in 0.., S in 1..37 {
      %0 = Input() {name = "cache"} : f32[5, 3]
      %1:2 = NonZero(%0) : i64[2, 15], i64[]
      %2 = Counted(%1.0, %1.1) {axis = 1, size = <M>} : i64[2, M]
      %3 = Transpose(%2) {perm = [1, 0]} : i64[M, 2]
      %4 = GatherND(%0, %3) : f32[M]
      %5 = Reduce(%4) {axes = [0], keep_dim = true, op = "sum"} : f32[1]
      %6 = Expand(%5) {shape = <3>} : f32[3]
      return %6
    }
    else graph else sym M in 0.., N in 0.., S in 1..37 {
      %0 = Input() {name = "cache"} : f32[5, 3]
      %1 = Reduce(%0) {axes = [0], keep_dim = false, op = "max"} : f32[3]
      return %1
    }
  return %4, %6
}
)",
             std::move(trials));
}

}  // namespace
}  // namespace quern::testing
