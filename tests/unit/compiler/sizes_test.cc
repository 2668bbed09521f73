// Sizes that are known only when a graph runs: what it requires of them is checked then, and kernels rely on it.
#include <gmock/gmock.h>

#include "absl/strings/str_replace.h"
#include "base/diagnostic.h"
#include "compiler/model.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using namespace quern::testing;

// A run with sizes that break what the graph requires says which and how.
void ExpectConflict(std::string_view text, const Binding& binding, const std::string& broken) {
  SCOPED_TRACE(text);
  const StatusOr<Planned> planned = Plan(text);
  ASSERT_TRUE(planned.ok()) << planned.status();
  const auto outputs = RunPlanned(*planned, binding);
  ASSERT_FALSE(outputs.ok());
  const auto diagnostic = DiagnosticOf(outputs.status());
  ASSERT_TRUE(diagnostic) << outputs.status();
  EXPECT_EQ(diagnostic->code, DiagnosticCode::kSizeConflict);
  EXPECT_THAT(std::string(outputs.status().message()), HasSubstr(broken));
}

constexpr std::string_view kSums = R"(graph g sym A in 1..64, B in 2..99 {
  %0 = Input() {name = "x"} : f32[A, 6]
  %1 = Input() {name = "y"} : f32[B, 6]
  %2 = Add(%0, %1) : f32[A, 6]
  %3 = Exp(%1) : f32[B, 6]
  return %2, %3
})";

TEST(Sizes, TwoSymbolsThatMustBeEqual) {
  ExpectRight(kSums, {{{"A", 7}, {"B", 7}}, {{"A", 64}, {"B", 64}}});
  ExpectConflict(kSums, {{"A", 7}, {"B", 8}}, "A == B");
  // B in 2..99 and A in 1..64 leave 2..64.
  ExpectRight(kSums, {{{"A", 2}, {"B", 2}}});
}

TEST(Sizes, SymbolAgainstANumber) {
  const std::string_view text = R"(graph g sym A in 1..64 {
  %0 = Input() {name = "x"} : f32[A, 6]
  %1 = Input() {name = "y"} : f32[8, 6]
  %2 = Add(%0, %1) : f32[8, 6]
  return %2
})";
  ExpectRight(text, {{{"A", 8}}});
  ExpectConflict(text, {{"A", 7}}, "A == 8");
  // A guard that leaves none of the sizes is refused by what plans it, and left out by what plans all.
  const StatusOr<Planned> one = Plan(text, {{"A", {1, 1}}});
  ASSERT_FALSE(one.ok());
  EXPECT_EQ(DiagnosticOf(one.status())->code, DiagnosticCode::kSizeConflict);
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  const auto guards = compiler::PossibleGuards(*graph, {{{"A", {1, 1}}}, {{"A", {2, 8}}}, {}});
  ASSERT_TRUE(guards.ok());
  EXPECT_EQ(guards->size(), 2);
}

// Kernels declare loops and buffers by names of small letters; symbols may be called the same.
TEST(Sizes, SymbolsMayHaveNamesThatKernelsUse) {
  for (const char* const name : {"c", "i0", "x0", "m", "k0", "S_c", "S_c_"}) {
    const std::string other = name == std::string("c") ? "c_" : "c";
    ExpectRight(absl::StrReplaceAll(R"(graph g sym $a in 1..999, $b in 1..64 {
  %0 = Input() {name = "x"} : f32[$a, $b]
  %1 = Softmax(%0) {axis = -1} : f32[$a, $b]
  %2 = Reduce(%1) {axes = [0], keep_dim = true, op = "sum"} : f32[1, $b]
  %3 = Add(%0, %2) : f32[$a, $b]
  %4 = Transpose(%3) {perm = [1, 0]} : f32[$b, $a]
  %5 = MatMul(%4, %0) {transpose_b = false} : f32[$b, $b]
  %6 = Concat(%5, %2) {axis = 0} : f32[$b + 1, $b]
  %7 = CumSum(%6) {axis = 0} : f32[$b + 1, $b]
  %8 = Slice(%0) {axis = 0, start = 0, step = 2} : f32[ceil($a / 2), $b]
  %9 = Reshape(%8) {shape = <ceil($a / 2)*$b>} : f32[ceil($a / 2)*$b]
  return %7, %9
})",
                                    {{"$a", name}, {"$b", other}}),
                {{{name, 7}, {other, 3}}, {{name, 129}, {other, 33}}});
  }
}

TEST(Sizes, NoSizesFitIsRefusedAtOnce) {
  const StatusOr<ir::Graph> graph = ir::Parse(R"(graph g sym A in 1..4, B in 5..9 {
  %0 = Input() {name = "x"} : f32[A, 6]
  %1 = Input() {name = "y"} : f32[B, 6]
  %2 = Add(%0, %1) : f32[A, 6]
  return %2
})");
  EXPECT_FALSE(graph.ok());
}

TEST(Sizes, InnerExtentsOfAProduct) {
  const std::string_view text = R"(graph g sym A in 1..64, K in 1..64, S in 1..300 {
  %0 = Input() {name = "x"} : f32[S, A]
  %1 = Input() {name = "y"} : f32[K, 31]
  %2 = MatMul(%0, %1) {transpose_b = false} : f32[S, 31]
  return %2
})";
  ExpectRight(text, {{{"A", 17}, {"K", 17}, {"S", 13}}});
  ExpectConflict(text, {{"A", 17}, {"K", 16}, {"S", 13}}, "A == K");
}

// A cache of its natural size: the last chunk of a prompt fits exactly, one row more is refused.
TEST(Sizes, CacheOfItsNaturalSize) {
  const std::string_view text = R"(graph g sym PAST_SEQ in 0..63, SEQ in 1..32 {
  %0 = Input() {name = "cache"} : f32[64, 5]
  %1 = Input() {name = "rows"} : f32[SEQ, 5]
  %2 = Update(%0, %1) {axis = 0, start = <PAST_SEQ>} : f32[64, 5]
  %3 = Narrow(%2) {axis = 0, length = <PAST_SEQ + SEQ>, start = <0>} : f32[PAST_SEQ + SEQ, 5]
  %4 = Exp(%3) : f32[PAST_SEQ + SEQ, 5]
  return %4, %2
  donate "cache" -> 1
})";
  ExpectRight(text, {{{"PAST_SEQ", 0}, {"SEQ", 32}}, {{"PAST_SEQ", 33}, {"SEQ", 31}}, {{"PAST_SEQ", 63}, {"SEQ", 1}}});
  ExpectConflict(text, {{"PAST_SEQ", 33}, {"SEQ", 32}}, "64 >= PAST_SEQ + SEQ");
}

TEST(Sizes, RowsOfATable) {
  const std::string_view text = R"(graph g sym PAST_SEQ in 0..95, SEQ in 1..32 {
  %0 = Input() {name = "x"} : f32[SEQ, 4]
  %1 = Param() {name = "t"} : f32[96, 4]
  %2 = Narrow(%1) {axis = 0, length = <SEQ>, start = <PAST_SEQ>} : f32[SEQ, 4]
  %3 = Narrow(%1) {axis = 1, length = <2>, start = <1>} : f32[96, 2]
  %4 = Narrow(%3) {axis = 0, length = <SEQ>, start = <PAST_SEQ>} : f32[SEQ, 2]
  %5 = Reduce(%4) {axes = [1], op = "sum"} : f32[SEQ]
  %6 = Mul(%0, %2) : f32[SEQ, 4]
  return %6, %5
})";
  ExpectRight(text, {{{"PAST_SEQ", 64}, {"SEQ", 32}}, {{"PAST_SEQ", 5}, {"SEQ", 3}}});
  ExpectConflict(text, {{"PAST_SEQ", 95}, {"SEQ", 2}}, "96 >= PAST_SEQ + SEQ");
}

// Keys of a length of their own beside a mask of past and present ones.
TEST(Sizes, SumsOfSymbols) {
  const std::string_view text = R"(graph g sym PAST in 0..40, SEQ in 1..9, T in 1..49 {
  %0 = Input() {name = "x"} : f32[T, 3]
  %1 = Input() {name = "y"} : f32[PAST, 3]
  %2 = Input() {name = "z"} : f32[SEQ, 3]
  %3 = Concat(%1, %2) {axis = 0} : f32[PAST + SEQ, 3]
  %4 = Mul(%3, %0) : f32[PAST + SEQ, 3]
  %5 = Reduce(%4) {axes = [0], op = "sum"} : f32[3]
  return %5
})";
  ExpectRight(text, {{{"PAST", 11}, {"SEQ", 6}, {"T", 17}}, {{"PAST", 0}, {"SEQ", 1}, {"T", 1}}});
  ExpectConflict(text, {{"PAST", 11}, {"SEQ", 6}, {"T", 16}}, "PAST + SEQ == T");
}

TEST(Sizes, MultiplesOfASymbol) {
  const std::string_view text = R"(graph g sym A in 1..100, S in 1..40 {
  %0 = Input() {name = "x"} : f32[2*S, 3]
  %1 = Input() {name = "y"} : f32[A, 3]
  %2 = Sub(%0, %1) : f32[2*S, 3]
  return %2
})";
  ExpectRight(text, {{{"A", 22}, {"S", 11}}});
  ExpectConflict(text, {{"A", 23}, {"S", 11}}, "2*S == A");
}

// What the graph requires parses back from its text.
TEST(Sizes, RequirementsAreText) {
  const StatusOr<ir::Graph> graph = ir::Parse(kSums);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(ir::Print(*graph), HasSubstr("require A == B"));
  const StatusOr<ir::Graph> again = ir::Parse(ir::Print(*graph));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(SameGraph(*graph, *again));
}

// A stride leaves a quotient of a size, which families take like any size.
TEST(Sizes, QuotientsThroughEveryFamily) {
  const std::vector<Binding> bindings = {{{"S", 1}}, {{"S", 2}}, {{"S", 7}}, {{"S", 64}}, {{"S", 97}}};
  ExpectRight(R"(graph g sym S in 1..100 {
  %0 = Input() {name = "x"} : f32[S, 6]
  %1 = Slice(%0) {axis = 0, start = 0, stop = 9223372036854775807, step = 2} : f32[ceil(S / 2), 6]
  %2 = Exp(%1) : f32[ceil(S / 2), 6]
  %3 = Transpose(%2) {perm = [1, 0]} : f32[6, ceil(S / 2)]
  %4 = Softmax(%3) {axis = -1} : f32[6, ceil(S / 2)]
  %5 = MatMul(%4, %2) : f32[6, 6]
  %6 = Reduce(%2) {op = "sum", axes = [0], keep_dim = false} : f32[6]
  %7 = Concat(%0, %2) {axis = 0} : f32[S + ceil(S / 2), 6]
  %8 = CumSum(%7) {axis = 0} : f32[S + ceil(S / 2), 6]
  %9 = Reshape(%2) {shape = <6*ceil(S / 2)>} : f32[6*ceil(S / 2)]
  %10 = ArgMax(%9) {axis = 0} : i64[]
  %11 = Slice(%9) {axis = 0, start = 1, stop = 9223372036854775807, step = 4} : f32[ceil((6*ceil(S / 2) - 1) / 4)]
  return %4, %5, %6, %8, %10, %11
})",
              bindings);
}

// Halves of a line of odd length, and one beside the other.
TEST(Sizes, FloorAndCeilOfOneSize) {
  ExpectRight(R"(graph g sym S in 2..100 {
  %0 = Input() {name = "x"} : f32[3, S]
  %1 = Narrow(%0) {axis = 1, start = <0>, length = <floor(S / 2)>} : f32[3, floor(S / 2)]
  %2 = Narrow(%0) {axis = 1, start = <S - floor(S / 2)>, length = <floor(S / 2)>} : f32[3, floor(S / 2)]
  %3 = Add(%1, %2) : f32[3, floor(S / 2)]
  %4 = Concat(%2, %1) {axis = 1} : f32[3, 2*floor(S / 2)]
  return %3, %4
})",
              {{{"S", 2}}, {{"S", 3}}, {{"S", 33}}, {{"S", 64}}});
}

// The size of an input is what a stride leaves of another's.
TEST(Sizes, QuotientAgainstASymbol) {
  constexpr std::string_view kText = R"(graph g sym S in 3..101, T in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 6]
  %1 = Input() {name = "y"} : f32[T, 6]
  %2 = Slice(%0) {axis = 0, start = 2, stop = 9223372036854775807, step = 3} : f32[ceil((S - 2) / 3), 6]
  %3 = Mul(%1, %2) : f32[T, 6]
  %4 = Exp(%1) : f32[T, 6]
  return %3, %4
})";
  ExpectRight(kText, {{{"S", 3}, {"T", 1}}, {{"S", 5}, {"T", 1}}, {{"S", 6}, {"T", 2}}, {{"S", 101}, {"T", 33}}});
  ExpectConflict(kText, {{"S", 6}, {"T", 1}}, "ceil((S + 1) / 3)");
}

// Two symbols that must be equal, each a dimension of one tensor.
TEST(Sizes, SquaresOfASymbol) {
  ExpectRight(R"(graph g sym S in 1..100, T in 1..1048576 {
  %0 = Input() {name = "x"} : f32[S, 6]
  %1 = Input() {name = "y"} : f32[T, 6]
  %2 = Add(%0, %1) : f32[S, 6]
  %3 = MatMul(%2, %1) {transpose_b = true} : f32[S, T]
  %4 = Softmax(%3) {axis = -1} : f32[S, T]
  %5 = Softmax(%3) {axis = 0} : f32[S, T]
  %6 = Transpose(%4) {perm = [1, 0]} : f32[T, S]
  %7 = Mul(%6, %5) : f32[T, S]
  %8 = Reshape(%7) {shape = <S*T>} : f32[S*T]
  %9 = CumSum(%8) {axis = 0} : f32[S*T]
  %10 = Reduce(%8) {op = "max", axes = [0], keep_dim = false} : f32[]
  %11 = Concat(%3, %7) {axis = 0} : f32[S + T, T]
  return %7, %9, %10, %11
})",
              {{{"S", 1}, {"T", 1}}, {{"S", 7}, {"T", 7}}, {{"S", 33}, {"T", 33}}});
}

// An equality that no symbol can be solved from: kernels know it as it stands.
TEST(Sizes, ProductsThatMustBeEqual) {
  constexpr std::string_view kText = R"(graph g sym A in 1..20, B in 1..20, C in 1..20, D in 1..20 {
  %0 = Input() {name = "x"} : f32[A, B]
  %1 = Input() {name = "y"} : f32[C, D, 2]
  %2 = Reshape(%0) {shape = <A*B>} : f32[A*B]
  %3 = Reshape(%1) {shape = <C*D, 2>} : f32[C*D, 2]
  %4 = Slice(%3) {axis = 1, start = 0, stop = 1, step = 1} : f32[C*D, 1]
  %5 = Reshape(%4) {shape = <C*D>} : f32[C*D]
  %6 = Add(%2, %5) : f32[A*B]
  %7 = Exp(%5) : f32[C*D]
  %8 = Softmax(%6) {axis = 0} : f32[A*B]
  return %6, %7, %8
})";
  ExpectRight(kText, {{{"A", 3}, {"B", 4}, {"C", 2}, {"D", 6}}, {{"A", 20}, {"B", 5}, {"C", 10}, {"D", 10}}});
  ExpectConflict(kText, {{"A", 3}, {"B", 4}, {"C", 2}, {"D", 5}}, "A*B == C*D");
}

// A product of symbols that is a number: what is read behind a division by one of them lies inside.
TEST(Sizes, ProductsThatMustBeANumber) {
  constexpr std::string_view kText = R"(graph g sym B in 1..4, S in 1..99 {
  %0 = Input() {name = "x"} : f32[S, B, 2, 11]
  %1 = Transpose(%0) {perm = [0, 1, 3, 2]} : f32[S, B, 11, 2]
  %2 = Reshape(%1) {shape = <36, 22>} : f32[36, 22]
  %3 = Exp(%2) : f32[36, 22]
  return %3
})";
  ExpectRight(kText, {{{"B", 3}, {"S", 12}}, {{"B", 4}, {"S", 9}}, {{"B", 1}, {"S", 36}}});
  ExpectConflict(kText, {{"B", 2}, {"S", 17}}, "792 == 22*B*S");
  // The other way round, with halves exchanged on the way.
  ExpectRight(R"(graph g sym P in 0..23, S in 1..32 {
  %0 = Input() {name = "x"} : f32[8, 2, 2]
  %1 = Input() {name = "c"} : f32[8, 1]
  %2 = Rope(%0, %1, %1) {head_dim = 2, n_rot = 2, packed = false, style = "gptj"} : f32[8, 2, 2]
  %3 = Reshape(%2) {shape = <P, S>} : f32[P, S]
  return %3
})",
              {{{"P", 4}, {"S", 8}}, {{"P", 1}, {"S", 32}}});
  const StatusOr<ir::Graph> never = ir::Parse(R"(graph g sym B in 1..4, S in 1..99 {
  %0 = Input() {name = "x"} : f32[S, B, 3, 11]
  %1 = Reshape(%0) {shape = <31, 22>} : f32[31, 22]
  return %1
})");
  EXPECT_FALSE(never.ok()) << "682 is no multiple of 33";
}

}  // namespace
}  // namespace quern
