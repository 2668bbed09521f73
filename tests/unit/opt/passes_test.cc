// Each pass as text in, text out, and graphs that it must leave alone.
#include "absl/strings/str_replace.h"
#include "ir/interpret.h"
#include "unit/opt/pass_text.h"

namespace quern::opt {
namespace {

TEST(ExpandComposites, Softmax) {
  EXPECT_EQ(After(ExpandComposites, R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[S, 7]
  %1 = Softmax(%0) {axis = -1} : f32[S, 7]
  return %1
}
)"),
            R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[S, 7]
  %1 = Reduce(%0) {axes = [-1], keep_dim = true, op = "max"} : f32[S, 1]
  %2 = Sub(%0, %1) : f32[S, 7]
  %3 = Exp(%2) : f32[S, 7]
  %4 = Reduce(%3) {axes = [-1], keep_dim = true, op = "sum"} : f32[S, 1]
  %5 = Recip(%4) : f32[S, 1]
  %6 = Mul(%3, %5) : f32[S, 7]
  return %6
}
)");
}

TEST(ExpandComposites, SoftmaxOfLargeValuesIsFinite) {
  const ir::Graph graph = Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 3]
  %1 = Softmax(%0) {axis = -1} : f32[2, 3]
  return %1
})");
  const StatusOr<ir::Graph> expanded = ExpandComposites(graph);
  ASSERT_TRUE(expanded.ok()) << expanded.status();
  const ir::Feeds feeds = {{"x", {DType::kF32, {2, 3}, {-3000, 1000, 3000, -5000, -5000, -9000}}}};
  const auto values = ir::Interpret(*expanded, {}, feeds);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].data, (std::vector<double>{0, 0, 1, 0.5, 0.5, 0}));
}

TEST(ExpandComposites, NestedAndSeveralResults) {
  const StatusOr<ir::Graph> graph = ExpandComposites(Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[3, 8]
  %1 = Input() {name = "r"} : f32[3, 8]
  %2 = Param() {name = "g"} : f32[8]
  %3:2 = FusedResidualRmsNorm(%0, %1, %2) {eps = 1e-05} : f32[3, 8], f32[3, 8]  @"norm"
  return %3.1, %3.0
})"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_STREQ(graph->node(graph->outputs[0].node).op->name, "Add");
  EXPECT_STREQ(graph->node(graph->outputs[1].node).op->name, "Mul");
  const ir::Origin& origin = graph->origins()[graph->node(graph->outputs[1].node).origin];
  EXPECT_EQ(origin.label, "norm");
  EXPECT_EQ(origin.pass, "expand_composites");
}

TEST(Simplify, ViewsOfViews) {
  EXPECT_EQ(After(Simplify, R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[S, 8]
  %1 = Reshape(%0) {shape = <S, 2, 4>} : f32[S, 2, 4]
  %2 = Reshape(%1) {shape = <S, 8>} : f32[S, 8]
  %3 = Transpose(%1) {perm = [0, 2, 1]} : f32[S, 4, 2]
  %4 = Transpose(%3) {perm = [0, 2, 1]} : f32[S, 2, 4]
  %5 = Cast(%2) {to = f32} : f32[S, 8]
  %6 = Reshape(%4) {shape = <S, 1, 8>} : f32[S, 1, 8]
  %7 = Transpose(%6) {perm = [1, 0, 2]} : f32[1, S, 8]
  return %5, %7
}
)"),
            R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[S, 8]
  %1 = Reshape(%0) {shape = <1, S, 8>} : f32[1, S, 8]
  return %0, %1
}
)");
}

// Two turns are one, also where neighbours that stay together became one dimension between them.
TEST(Simplify, TurnsBehindTurns) {
  EXPECT_EQ(After(Simplify, R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[2, 5, S, 7]
  %1 = Transpose(%0) {perm = [0, 3, 1, 2]} : f32[2, 7, 5, S]
  %2 = Reshape(%1) {shape = <2, 7, 5*S>} : f32[2, 7, 5*S]
  %3 = Transpose(%2) {perm = [0, 2, 1]} : f32[2, 5*S, 7]
  %4 = Transpose(%2) {perm = [1, 0, 2]} : f32[7, 2, 5*S]
  %5 = Reshape(%1) {shape = <2, 35, S>} : f32[2, 35, S]
  %6 = Transpose(%5) {perm = [0, 2, 1]} : f32[2, S, 35]
  return %3, %4, %6
}
)"),
            R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[2, 5, S, 7]
  %1 = Transpose(%0) {perm = [0, 3, 1, 2]} : f32[2, 7, 5, S]
  %2 = Reshape(%0) {shape = <2, 5*S, 7>} : f32[2, 5*S, 7]
  %3 = Reshape(%0) {shape = <2, 5*S, 7>} : f32[2, 5*S, 7]
  %4 = Transpose(%3) {perm = [2, 0, 1]} : f32[7, 2, 5*S]
  %5 = Reshape(%1) {shape = <2, 35, S>} : f32[2, 35, S]
  %6 = Transpose(%5) {perm = [0, 2, 1]} : f32[2, S, 35]
  return %2, %4, %6
}
)");
}

// Operands that were all turned in one way are joined first; not where rows stay rows, or where they differ.
TEST(Simplify, JoinsBeforeTurning) {
  const char* const graph = R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 5, 3, 7]
  %1 = Input() {name = "y"} : f32[2, 3, 2, 7]
  %2 = Transpose(%0) {perm = [$p]} : $t
  %3 = Reshape(%2) {shape = <$s>} : f32[$s]
  %4 = Transpose(%1) {perm = [$q]} : $u
  %5 = Reshape(%4) {shape = <$v>} : f32[$v]
  %6 = Concat(%3, %5) {axis = $a} : f32[$r]
  return %6
}
)";
  const std::string joined = After(Simplify, absl::StrReplaceAll(graph, {{"$p", "0, 3, 1, 2"},
                                                                         {"$t", "f32[2, 7, 5, 3]"},
                                                                         {"$s", "2, 7, 15"},
                                                                         {"$q", "0, 3, 1, 2"},
                                                                         {"$u", "f32[2, 7, 3, 2]"},
                                                                         {"$v", "2, 7, 6"},
                                                                         {"$a", "-1"},
                                                                         {"$r", "2, 7, 21"}}));
  EXPECT_THAT(joined, testing::HasSubstr("Concat(%2, %3) {axis = 1} : f32[2, 21, 7]\n"));
  EXPECT_THAT(joined, testing::HasSubstr("Transpose(%4) {perm = [0, 2, 1]} : f32[2, 7, 21]\n"));
  const auto kept = [&](std::vector<std::pair<const absl::string_view, absl::string_view>> by) {
    return After(Simplify, absl::StrReplaceAll(graph, by));
  };
  EXPECT_THAT(kept({{"$p", "0, 1, 2, 3"},
                    {"$t", "f32[2, 5, 3, 7]"},
                    {"$s", "2, 15, 7"},
                    {"$q", "0, 2, 1, 3"},
                    {"$u", "f32[2, 2, 3, 7]"},
                    {"$v", "2, 6, 7"},
                    {"$a", "1"},
                    {"$r", "2, 21, 7"}}),
              testing::HasSubstr("Concat(%2, %4) {axis = 1} : f32[2, 21, 7]\n"));
  EXPECT_THAT(kept({{"$p", "0, 3, 1, 2"},
                    {"$t", "f32[2, 7, 5, 3]"},
                    {"$s", "2, 7, 15"},
                    {"$q", "2, 3, 0, 1"},
                    {"$u", "f32[2, 7, 2, 3]"},
                    {"$v", "2, 7, 6"},
                    {"$a", "2"},
                    {"$r", "2, 7, 21"}}),
              testing::HasSubstr("Concat(%3, %5) {axis = 2} : f32[2, 7, 21]\n"));
}

// Rows that stay rows are joined where they are.
TEST(Simplify, JoinsTurnedRows) {
  EXPECT_THAT(After(Simplify, R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 5, 7]
  %1 = Input() {name = "y"} : f32[2, 3, 7]
  %2 = Transpose(%0) {perm = [1, 0, 2]} : f32[5, 2, 7]
  %3 = Transpose(%1) {perm = [1, 0, 2]} : f32[3, 2, 7]
  %4 = Concat(%2, %3) {axis = 0} : f32[8, 2, 7]
  return %4
}
)"),
              testing::HasSubstr("Concat(%2, %3) {axis = 0} : f32[8, 2, 7]\n"));
}

TEST(Simplify, PartsOfAConcat) {
  EXPECT_EQ(After(Simplify, R"(graph g {
  %0 = Input() {name = "up"} : f32[3, 8]
  %1 = Input() {name = "gate"} : f32[3, 8]
  %2 = Concat(%0, %1) {axis = -1} : f32[3, 16]
  %3 = Narrow(%2) {axis = -1, length = <8>, start = <8>} : f32[3, 8]
  %4 = Narrow(%2) {axis = -1, length = <3>, start = <2>} : f32[3, 3]
  %5 = Narrow(%2) {axis = -1, length = <8>, start = <4>} : f32[3, 8]
  %6 = Narrow(%5) {axis = 1, length = <2>, start = <3>} : f32[3, 2]
  %7 = Narrow(%2) {axis = 1, length = <3>, start = <8>} : f32[3, 3]
  return %3, %4, %6, %7
}
)"),
            R"(graph g {
  %0 = Input() {name = "up"} : f32[3, 8]
  %1 = Input() {name = "gate"} : f32[3, 8]
  %2 = Concat(%0, %1) {axis = -1} : f32[3, 16]
  %3 = Narrow(%0) {axis = 1, length = <3>, start = <2>} : f32[3, 3]
  %4 = Narrow(%2) {axis = 1, length = <2>, start = <7>} : f32[3, 2]
  %5 = Narrow(%1) {axis = 1, length = <3>, start = <0>} : f32[3, 3]
  return %1, %3, %4, %5
}
)");
}

constexpr const char* kOne = "0000803f";
constexpr const char* kZero = "00000000";
constexpr const char* kMinusZero = "00000080";

std::string WithConstant(const std::string& hex, const std::string& op) {
  return "graph g {\n  %0 = Input() {name = \"x\"} : f32[5]\n  %1 = Constant() hex " + hex + " : f32[]\n  %2 = " + op +
         " : f32[5]\n  return %2\n}\n";
}
constexpr const char* kInputOnly = "graph g {\n  %0 = Input() {name = \"x\"} : f32[5]\n  return %0\n}\n";

TEST(Simplify, NeutralElements) {
  EXPECT_EQ(After(Simplify, WithConstant(kOne, "Mul(%0, %1)")), kInputOnly);
  EXPECT_EQ(After(Simplify, WithConstant(kOne, "Mul(%1, %0)")), kInputOnly);
  EXPECT_EQ(After(Simplify, WithConstant(kOne, "Div(%0, %1)")), kInputOnly);
  EXPECT_EQ(After(Simplify, WithConstant(kZero, "Sub(%0, %1)")), kInputOnly);
  EXPECT_EQ(After(Simplify, WithConstant(kMinusZero, "Add(%0, %1)")), kInputOnly);
}

TEST(Simplify, KeepsSignedZeros) {
  // -0 + 0 is 0, and -0 - (-0) is 0: neither leaves x as it is.
  ExpectUnchanged(Simplify, WithConstant(kZero, "Add(%0, %1)"));
  ExpectUnchanged(Simplify, WithConstant(kMinusZero, "Sub(%0, %1)"));
  ExpectUnchanged(Simplify, WithConstant(kOne, "Div(%1, %0)"));
  ExpectUnchanged(Simplify, WithConstant(kZero, "Mul(%0, %1)"));  // NaN and infinities do not become 0
}

TEST(Simplify, KeepsBroadcasts) {
  ExpectUnchanged(Simplify, R"(graph g {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Constant() hex 0000803f : f32[1, 1]
  %2 = Mul(%0, %1) : f32[1, 5]
  return %2
}
)");
}

TEST(Simplify, TransposedRightSide) {
  EXPECT_EQ(After(Simplify, R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 8]
  %1 = Param() {name = "w"} : f32[3, 8]
  %2 = Transpose(%1) {perm = [1, 0]} : f32[8, 3]
  %3 = MatMul(%0, %2) {transpose_b = false} : f32[5, 3]
  %4 = Neg(%3) : f32[5, 3]
  %5 = Neg(%4) : f32[5, 3]
  return %5
}
)"),
            R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 8]
  %1 = Param() {name = "w"} : f32[3, 8]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[5, 3]
  return %2
}
)");
  // Another transposition is none of the last two dimensions.
  ExpectUnchanged(Simplify, R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 3, 5]
  %1 = Input() {name = "w"} : f32[5, 2, 7]
  %2 = Transpose(%1) {perm = [1, 0, 2]} : f32[2, 5, 7]
  %3 = MatMul(%0, %2) {transpose_b = false} : f32[2, 3, 7]
  return %3
}
)");
}

// All rows of a table by their numbers are what blocks hold: products and gathers read those.
TEST(Simplify, BlocksReadAsNumbers) {
  const std::string begin = R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 64]
  %1 = Param() {name = "w"} : n4_1[7, 64]
)";
  const std::string rows = R"(  %2 = Iota() {axis = 0, dtype = i64, shape = <7>} : i64[7]
  %3 = Gather(%1, %2) {axis = 0} : f32[7, 64]
)";
  const std::string product = begin + R"(  %2 = MatMul(%0, %1) {transpose_b = true} : f32[5, 7]
  return %2
}
)";
  EXPECT_EQ(After(Simplify, begin + rows + R"(  %4 = MatMul(%0, %3) {transpose_b = true} : f32[5, 7]
  return %4
}
)"),
            product);
  EXPECT_EQ(After(Simplify, begin + rows + R"(  %4 = Transpose(%3) {perm = [1, 0]} : f32[64, 7]
  %5 = MatMul(%0, %4) {transpose_b = false} : f32[5, 7]
  return %5
}
)"),
            product);
  EXPECT_EQ(After(Simplify, R"(graph g {
  %0 = Input() {name = "ids"} : i32[3]
  %1 = Param() {name = "w"} : n4_1[7, 64]
)" + rows + R"(  %4 = Gather(%3, %0) {axis = 0} : f32[3, 64]
  return %4
}
)"),
            R"(graph g {
  %0 = Input() {name = "ids"} : i32[3]
  %1 = Param() {name = "w"} : n4_1[7, 64]
  %2 = Gather(%1, %0) {axis = 0} : f32[3, 64]
  return %2
}
)");
  // Not all of them; another axis; and of a format whose products would take bytes of x.
  const std::string six = R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 64]
  %1 = Param() {name = "w"} : n4_1[7, 64]
  %2 = Iota() {axis = 0, dtype = i64, shape = <6>} : i64[6]
  %3 = Gather(%1, %2) {axis = 0} : f32[6, 64]
  %4 = MatMul(%0, %3) {transpose_b = true} : f32[5, 6]
  return %4
}
)";
  ExpectUnchanged(Simplify, six);
  ExpectUnchanged(Simplify, begin + rows + R"(  %4 = Iota() {axis = 0, dtype = i64, shape = <3>} : i64[3]
  %5 = Gather(%3, %4) {axis = 1} : f32[7, 3]
  return %5
}
)");
  ExpectUnchanged(Simplify, R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 64]
  %1 = Param() {name = "w"} : q4_0[7, 64]
  %2 = Iota() {axis = 0, dtype = i64, shape = <7>} : i64[7]
  %3 = Gather(%1, %2) {axis = 0} : f32[7, 64]
  %4 = MatMul(%0, %3) {transpose_b = true} : f32[5, 7]
  return %4
}
)");
}

TEST(FoldConstants, ChainsButNotParams) {
  EXPECT_EQ(After(FoldConstants, R"(graph g {
  %0 = Constant() hex 0000404000008040 : f32[2]
  %1 = Mul(%0, %0) : f32[2]
  %2 = Reduce(%1) {axes = [0], keep_dim = false, op = "sum"} : f32[]
  %3 = Param() {name = "p"} : f32[2]
  %4 = Add(%3, %2) : f32[2]
  return %2, %4
}
)"),
            R"(graph g {
  %0 = Constant() hex 0000404000008040 : f32[2]
  %1 = Constant() hex 0000104100008041 : f32[2]
  %2 = Constant() hex 0000c841 : f32[]
  %3 = Param() {name = "p"} : f32[2]
  %4 = Add(%3, %2) : f32[2]
  return %2, %4
}
)");
}

// As kernels compute them: wrapped, not by way of a double.
TEST(FoldConstants, IntegersAreExact) {
  EXPECT_EQ(After(FoldConstants, R"(graph g {
  %0 = Constant() hex 15cd5b07 : i32[]
  %1 = Constant() hex b168de3a : i32[]
  %2 = Mul(%0, %1) : i32[]
  return %2
})"),
            R"(graph g {
  %0 = Constant() hex 15cd5b07 : i32[]
  %1 = Constant() hex b168de3a : i32[]
  %2 = Constant() hex 8553fffb : i32[]
  return %2
}
)");
  EXPECT_EQ(After(FoldConstants, R"(graph g {
  %0 = Constant() hex 0100000000002000 : i64[]
  %1 = Constant() hex 0100000000000000 : i64[]
  %2 = Add(%0, %1) : i64[]
  %3 = Cast(%2) {to = i8} : i8[]
  return %2, %3
})"),
            R"(graph g {
  %0 = Constant() hex 0100000000002000 : i64[]
  %1 = Constant() hex 0100000000000000 : i64[]
  %2 = Constant() hex 0200000000002000 : i64[]
  %3 = Constant() hex 02 : i8[]
  return %2, %3
}
)");
}

TEST(FoldConstants, LeavesLargeAndSymbolicResults) {
  ExpectUnchanged(FoldConstants, R"(graph g sym S in 1..4 {
  %0 = Constant() hex 00004040 : f32[1]
  %1 = Expand(%0) {shape = <16385>} : f32[16385]
  %2 = Expand(%0) {shape = <S>} : f32[S]
  return %1, %2
}
)");
}

TEST(Cse, EqualNodesBecomeOne) {
  EXPECT_EQ(After(Cse, R"(graph g {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Constant() hex 0000803f : f32[]
  %2 = Constant() hex 0000803f : f32[]
  %3 = Add(%0, %1) : f32[5]
  %4 = Add(%0, %2) : f32[5]
  %5 = Sub(%3, %4) : f32[5]
  %6 = Reduce(%5) {axes = [0], keep_dim = true, op = "sum"} : f32[1]
  %7 = Reduce(%5) {axes = [0], keep_dim = false, op = "sum"} : f32[]
  return %6, %7
}
)"),
            R"(graph g {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Constant() hex 0000803f : f32[]
  %2 = Add(%0, %1) : f32[5]
  %3 = Sub(%2, %2) : f32[5]
  %4 = Reduce(%3) {axes = [0], keep_dim = true, op = "sum"} : f32[1]
  %5 = Reduce(%3) {axes = [0], keep_dim = false, op = "sum"} : f32[]
  return %4, %5
}
)");
}

TEST(Cse, TellsEqualBytesOfOtherTypesApart) {
  ExpectUnchanged(Cse, R"(graph g {
  %0 = Constant() hex 0000803f : f32[]
  %1 = Constant() hex 0000803f : i32[]
  %2 = Constant() hex 0000803f : f32[1]
  return %0, %1, %2
}
)");
}

TEST(Cse, TellsResultsOfOneNodeApart) {
  ExpectUnchanged(Cse, R"(graph g {
  %0 = Input() {name = "x"} : f32[3, 5]
  %1 = Input() {name = "y"} : f32[3, 5]
  %2 = Param() {name = "gamma"} : f32[5]
  %3:2 = FusedResidualRmsNorm(%0, %1, %2) {eps = 0.5, has_bias = false} : f32[3, 5], f32[3, 5]
  %4 = Exp(%3.0) : f32[3, 5]
  %5 = Exp(%3.1) : f32[3, 5]
  return %4, %5
}
)");
}

TEST(Dce, KeepsInputsAndDropsParams) {
  EXPECT_EQ(After(Dce, R"(graph g {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Input() {name = "unused"} : f32[5]
  %2 = Param() {name = "p"} : f32[5]
  %3 = Add(%0, %2) : f32[5]
  %4 = Exp(%0) : f32[5]
  return %4
}
)"),
            R"(graph g {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Input() {name = "unused"} : f32[5]
  %2 = Exp(%0) : f32[5]
  return %2
}
)");
}

constexpr const char* kQkv = R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[S, 256]
  %1 = Param() {name = "q"} : q4_K[64, 256]
  %2 = Param() {name = "k"} : q6_K[32, 256]
  %3 = Param() {name = "v"} : q8_0[32, 256]
  %4 = Param() {name = "w"} : f32[32, 256]
  %5 = MatMul(%0, %1) {transpose_b = true} : f32[S, 64]
  %6 = MatMul(%0, %2) {transpose_b = true} : f32[S, 32]
  %7 = MatMul(%0, %3) {transpose_b = true} : f32[S, 32]
  %8 = MatMul(%0, %4) {transpose_b = true} : f32[S, 32]
  return %5, %6, %7, %8
}
)";

TEST(QuantiseActivations, OnceForEachFormat) {
  EXPECT_EQ(After(QuantiseActivations, kQkv, QuantiseOptions{}),
            R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[S, 256]
  %1 = Param() {name = "q"} : q4_K[64, 256]
  %2 = Param() {name = "k"} : q6_K[32, 256]
  %3 = Param() {name = "v"} : q8_0[32, 256]
  %4 = Param() {name = "w"} : f32[32, 256]
  %5 = Quantize(%0) {format = q8_K} : q8_K[S, 256]
  %6 = MatMul(%5, %1) {transpose_b = true} : f32[S, 64]
  %7 = MatMul(%5, %2) {transpose_b = true} : f32[S, 32]
  %8 = Quantize(%0) {format = q8_0} : q8_0[S, 256]
  %9 = MatMul(%8, %3) {transpose_b = true} : f32[S, 32]
  %10 = MatMul(%0, %4) {transpose_b = true} : f32[S, 32]
  return %6, %7, %9, %10
}
)");
}

// Where the target is faster so, with block formats as they are wanted or not.
TEST(QuantiseActivations, HalvesMayBeSumsOfBf16) {
  constexpr const char* kHalves = R"(graph g {
  %0 = Input() {name = "x"} : f32[7, 256]
  %1 = Input() {name = "y"} : f16[7, 256]
  %2 = Param() {name = "q"} : q8_0[64, 256]
  %3 = Param() {name = "h"} : f16[32, 256]
  %4 = Param() {name = "b"} : bf16[256, 32]
  %5 = Param() {name = "f"} : f32[32, 256]
  %6 = MatMul(%0, %2) {transpose_b = true} : f32[7, 64]
  %7 = MatMul(%0, %3) {transpose_b = true} : f32[7, 32]
  %8 = MatMul(%0, %4) {transpose_b = false} : f32[7, 32]
  %9 = MatMul(%0, %5) {transpose_b = true} : f32[7, 32]
  %10 = MatMul(%1, %3) {transpose_b = true} : f16[7, 32]
  return %6, %7, %8, %9, %10
}
)";
  const std::string marked =
      absl::StrReplaceAll(kHalves, {{"%7 = MatMul(%0, %3) {", "%7 = MatMul(%0, %3) {as_bf16 = true, "},
                                    {"%8 = MatMul(%0, %4) {", "%8 = MatMul(%0, %4) {as_bf16 = true, "}});
  EXPECT_EQ(After(QuantiseActivations, kHalves, QuantiseOptions{.exact = true}), kHalves);
  EXPECT_EQ(After(QuantiseActivations, kHalves, QuantiseOptions{.exact = true, .as_bf16 = true}), marked);
}

TEST(QuantiseActivations, ExactDoesNothing) {
  EXPECT_EQ(After(QuantiseActivations, kQkv, QuantiseOptions{.exact = true}), kQkv);
}

constexpr const char* kSymbolic = R"(graph g sym PAST in 0..31, SEQ in 1..256 {
  %0 = Input() {name = "x"} : f32[SEQ, 4]
  %1 = Input() {name = "table"} : f32[512, 4]
  %2 = Narrow(%1) {axis = 0, length = <SEQ>, start = <PAST>} : f32[SEQ, 4]
  %3 = Region(%0, %2) {family = "map"} : f32[2*SEQ, 2] body graph body sym SEQ in 1..256 {
    %0 = Input() {name = "i0"} : f32[SEQ, 4]
    %1 = Input() {name = "i1"} : f32[SEQ, 4]
    %2 = Add(%0, %1) : f32[SEQ, 4]
    %3 = Reshape(%2) {shape = <2*SEQ, 2>} : f32[2*SEQ, 2]
    return %3
  }
  return %3
}
)";

TEST(SubstituteSymbols, EverywhereAndInBodies) {
  EXPECT_EQ(After(SubstituteSymbols, kSymbolic, Binding{{"SEQ", 3}}), R"(graph g sym PAST in 0..31 {
  %0 = Input() {name = "x"} : f32[3, 4]
  %1 = Input() {name = "table"} : f32[512, 4]
  %2 = Narrow(%1) {axis = 0, length = <3>, start = <PAST>} : f32[3, 4]
  %3 = Region(%0, %2) {family = "map"} : f32[6, 2] body graph body {
    %0 = Input() {name = "i0"} : f32[3, 4]
    %1 = Input() {name = "i1"} : f32[3, 4]
    %2 = Add(%0, %1) : f32[3, 4]
    %3 = Reshape(%2) {shape = <6, 2>} : f32[6, 2]
    return %3
  }
  return %3
}
)");
}

TEST(SubstituteSymbols, RefusesWhatCannotBe) {
  EXPECT_EQ(SubstituteSymbols(Parsed(kSymbolic), {{"SEQ", 257}}).status().message(), "SEQ = 257 is not in 1..256");
  const ir::Graph constrained = Parsed(R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[S]
  %1 = Input() {name = "y"} : f32[5]
  %2 = Add(%0, %1) : f32[5]
  return %2
})");
  EXPECT_EQ(SubstituteSymbols(constrained, {{"S", 4}}).status().message(),
            "Add: b is f32[5], extents that broadcast with [4] expected");
  const StatusOr<ir::Graph> one = SubstituteSymbols(constrained, {{"S", 1}});
  EXPECT_EQ(one.status().message(), "S == 5 does not hold for any sizes: 1 == 5");
  const StatusOr<ir::Graph> five = SubstituteSymbols(constrained, {{"S", 5}});
  ASSERT_TRUE(five.ok()) << five.status();
  EXPECT_TRUE(five->constraints.empty());
}

// Bounds that only several constraints together say: N is at most 9, and three times that is less than 32.
TEST(UnifySizes, ConstraintsThatNoSizesMeetTogether) {
  const auto check = [](const std::string& symbols, const std::string& requirements) {
    const StatusOr<ir::Graph> graph =
        ir::Parse("graph g sym " + symbols + " {\n  %0 = Input() {name = \"x\"} : f32[S, N, K]\n" + requirements +
                  "  return %0\n}");
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? std::string(CheckSizes(*graph, graph->symbols).message()) : "";
  };
  const std::string both = "  require S >= N\n  require 3*N >= K\n";
  EXPECT_EQ(check("K in 32..37, N in 0.., S in 1..9", both),
            "3*N >= K does not hold for any sizes that the others leave");
  EXPECT_EQ(check("K in 27..37, N in 0.., S in 1..9", both), "");
  EXPECT_EQ(check("K in 0.., N in 0.., S in 0..", both), "");
  EXPECT_EQ(check("K in 5..9, N in 0.., S in 0..20", "  require N >= S\n  require S >= N + K\n"),
            "S >= K + N does not hold for any sizes that the others leave");
}

TEST(NarrowRanges, InBodiesToo) {
  const StatusOr<ir::Graph> graph = NarrowRanges(Parsed(kSymbolic), {{"SEQ", {2, 8}}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->symbols.at("SEQ"), (SymbolRange{2, 8}));
  EXPECT_EQ(graph->node(3).body().symbols.at("SEQ"), (SymbolRange{2, 8}));
  EXPECT_EQ(NarrowRanges(Parsed(kSymbolic), {{"SEQ", {0, 8}}}).status().message(),
            "the range 0..8 of SEQ does not lie in 1..256");
}

TEST(OncePerBinding, WeightsAndWhatFollows) {
  const std::vector<bool> once = OncePerBinding(Parsed(R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[S, 5]
  %1 = Param() {name = "w"} : f32[5, 3]
  %2 = Transpose(%1) {perm = [1, 0]} : f32[3, 5]
  %3 = MatMul(%0, %2) {transpose_b = true} : f32[S, 3]
  %4 = Narrow(%1) {axis = 0, length = <1>, start = <S - 1>} : f32[1, 3]
  return %3, %4
})"));
  EXPECT_EQ(once, (std::vector<bool>{false, true, true, false, false}));
}

// A loop's body that writes over its cache, and sums it before or after.
std::string Filling(const std::string& summed) {
  return R"(graph g {
  %0 = Input() {name = "cache"} : f32[8, 5]
  %1 = Input() {name = "x"} : f32[1, 5]
  %2:2 = While(%1, %0) {carries = 2, max = 0} : f32[1, 5], f32[8, 5]
    cond graph cond {
      %0 = Input() {name = "x"} : f32[1, 5]
      %1 = Input() {name = "cache"} : f32[8, 5]
      %2 = Reduce(%0) {axes = [0, 1], keep_dim = false, op = "sum"} : f32[]
      %3 = Lt(%2, %2) : bool[]
      return %3
    }
    body graph body {
      %0 = Input() {name = "x"} : f32[1, 5]
      %1 = Input() {name = "cache"} : f32[8, 5]
      %2 = Update(%1, %0) {axis = 0, start = <3>} : f32[8, 5]
      %3 = Reduce()" +
         summed + R"() {axes = [0], keep_dim = true, op = "sum"} : f32[1, 5]
      return %3, %2
    }
  return %2.1
}
)";
}

TEST(DonateCarries, NotWhatIsReadAfterwards) {
  EXPECT_NE(After(DonateCarries, Filling("%2")).find("donate \"cache\" -> 1"), std::string::npos);
  EXPECT_EQ(After(DonateCarries, Filling("%1")).find("donate"), std::string::npos);
}

}  // namespace
}  // namespace quern::opt
