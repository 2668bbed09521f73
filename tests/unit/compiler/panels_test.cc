// Products with weights in panels: their results, and how the panels are read.
#include <gmock/gmock.h>

#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "quern/graph.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;
using ::testing::HasSubstr;
using ::testing::Not;

struct PanelCase {
  const char *symbols, *rows, *k, *n;
  std::vector<Binding> bindings;
};

// `text` with weights $b as [K, N] and as [N, K], $t.
void ExpectRightOf(const char* text, std::span<const PanelCase> cases) {
  for (const PanelCase& test : cases) {
    for (const bool transposed : {false, true}) {
      const std::string weights = transposed ? absl::StrCat(test.n, ", ", test.k) : absl::StrCat(test.k, ", ", test.n);
      ExpectRight(absl::StrReplaceAll(text, {{"$s", test.symbols},
                                             {"$m", test.rows},
                                             {"$k", test.k},
                                             {"$n", test.n},
                                             {"$b", weights},
                                             {"$t", transposed ? "true" : "false"}}),
                  test.bindings);
    }
  }
}

// Weights of f32 become panels: columns that fill them and not, few rows and many, blocks of rows, a prologue and what
// follows, several products of one left side, and sizes that are known at the run.
TEST(Products, OfWeightsInPanels) {
  const std::vector<Binding> some = {{{"S", 1}}, {{"S", 7}}, {{"S", 9}}, {{"S", 251}}};
  const PanelCase cases[] = {
      {"", "9", "1", "32", {{}}},
      {"", "13", "67", "31", {{}}},
      {"", "1", "67", "33", {{}}},
      {"", "8", "129", "96", {{}}},
      {"", "2, 1, 101", "257", "97", {{}}},
      {"", "61", "4099", "40", {{}}},
      {"", "17", "601", "64", {{}}},
      {"", "37", "517", "2048", {{}}},
      {"", "30", "2053", "64", {{}}},
      {"", "4099", "3", "9", {{}}},
      {" sym S in 1..4096", "S", "37", "131", some},
      {" sym S in 9..300", "2, S", "29", "64", {{{"S", 9}}, {{"S", 251}}}},
  };
  ExpectRightOf(R"(graph g$s {
  %0 = Input() {name = "a"} : f32[$m, $k]
  %1 = Param() {name = "b"} : f32[$b]
  %2 = Param() {name = "c"} : f32[$n]
  %3 = Relu(%0) : f32[$m, $k]
  %4 = MatMul(%3, %1) {transpose_b = $t} : f32[$m, $n]
  %5 = Add(%4, %2) : f32[$m, $n]
  %6 = Silu(%5) : f32[$m, $n]
  return %6
})",
                cases);
}

// Weights of bf16 become panels of pairs where the target multiplies those: k in one piece and in blocks, odd, columns
// that fill panels and not, parts of a sum, batches, and sizes that are known at the run.
TEST(Products, OfPairsInPanels) {
  const PanelCase cases[] = {
      {"", "9", "2", "32", {{}}},
      {"", "13", "66", "31", {{}}},
      {"", "13", "67", "31", {{}}},
      {"", "2, 1, 101", "258", "97", {{}}},
      {"", "61", "4100", "40", {{}}},
      {"", "29", "2050", "131", {{}}},
      {"", "37", "1030", "64", {{}}},
      {"", "211", "70", "192", {{}}},
      {"", "11", "60006", "64", {{}}},
      {" sym S in 9..300", "2, S", "38", "64", {{{"S", 9}}, {{"S", 251}}}},
      {" sym S in 1..300", "S", "38", "96", {{{"S", 1}}, {{"S", 251}}}},
  };
  ExpectRightOf(R"(graph g$s {
  %0 = Input() {name = "a"} : bf16[$m, $k]
  %1 = Param() {name = "b"} : bf16[$b]
  %2 = Param() {name = "c"} : f32[$n]
  %3 = MatMul(%0, %1) {transpose_b = $t} : bf16[$m, $n]
  %4 = Cast(%3) {to = f32} : f32[$m, $n]
  %5 = Add(%4, %2) : f32[$m, $n]
  %6 = Tanh(%5) : f32[$m, $n]
  return %6
})",
                cases);
  // Panels that are made on the way to the product are made before it.
  ExpectRight(R"(graph g {
  %0 = Input() {name = "a"} : bf16[37, 6]
  %1 = Input() {name = "b"} : bf16[3, 2, 32, 2]
  %2 = Transpose(%1) {perm = [1, 0, 2, 3]} : bf16[2, 3, 32, 2]
  %3 = MatMulPanels(%0, %2) {columns = 41} : bf16[37, 41]
  return %3
})",
              {{}});
  Graph g;
  const Value x = g.Input("x", "bf16[40, 768]");
  g.Output("y", g.Op("MatMul", {x, g.Param("w", "bf16[768, 4096]")}));
  const Options options = {.cpu = "avx512vnni"};
  const std::string kernel = *g.Dump({.stage = "kir", .kernel = "MatMulPanels"}, options);
  EXPECT_THAT(kernel, HasSubstr("x1[0 : +32, n0 / 32 * 384 : +384]"));
  EXPECT_THAT(kernel, Not(HasSubstr("pack")));
}

// Weights of bytes become panels of quads: with and without signs on either side, k that fills words and not, any
// number of rows, batches, blocks of rows, and sizes that are known at the run.
TEST(Products, OfQuadsInPanels) {
  const PanelCase cases[] = {
      {"", "1", "67", "33", {{}}},
      {"", "9", "3", "32", {{}}},
      {"", "13", "66", "31", {{}}},
      {"", "2, 1, 101", "257", "97", {{}}},
      {"", "61", "4099", "40", {{}}},
      {"", "211", "70", "192", {{}}},
      {" sym S in 1..300", "S", "38", "96", {{{"S", 1}}, {{"S", 251}}}},
  };
  for (const char* x : {"u8", "i8"}) {
    for (const char* w : {"u8", "i8"}) {
      ExpectRightOf(absl::StrReplaceAll(R"(graph g$s {
  %0 = Input() {name = "a"} : $1[$m, $k]
  %1 = Param() {name = "b"} : $2[$b]
  %2 = Param() {name = "c"} : i32[$n]
  %3 = MatMul(%0, %1) {transpose_b = $t} : i32[$m, $n]
  %4 = Add(%3, %2) : i32[$m, $n]
  return %4
})",
                                        {{"$1", x}, {"$2", w}})
                        .c_str(),
                    cases);
    }
  }
  // Of one left side, some with signs and some without.
  ExpectRight(R"(graph g {
  %0 = Input() {name = "a"} : u8[21, 67]
  %1 = Param() {name = "b"} : i8[67, 64]
  %2 = Param() {name = "c"} : u8[67, 64]
  %3 = MatMul(%0, %1) {transpose_b = false} : i32[21, 64]
  %4 = MatMul(%0, %2) {transpose_b = false} : i32[21, 64]
  return %3, %4
})",
              {{}});
  Graph g;
  const Value x = g.Input("x", "u8[40, 768]");
  g.Output("y", g.Op("MatMul", {x, g.Param("w", "i8[768, 4096]")}));
  const std::string kernel = *g.Dump({.stage = "kir", .kernel = "MatMulPanels"}, {.cpu = "avx512vnni"});
  EXPECT_THAT(kernel, HasSubstr("/ 32 * 192 : +192]"));
  EXPECT_THAT(kernel, Not(HasSubstr("pack")));
}

// Blocks of rows ask for the panels behind theirs while the second cache has room for both, two of each where it has
// room for them; long panels are read one by one, and bring themselves.
TEST(Products, PanelsAreAskedForWhileOthersAreRead) {
  const auto kernel = [](int64_t rows, int64_t k) {
    Graph g;
    const Value x = g.Input("x", absl::StrFormat("f32[%d, %d]", rows, k));
    g.Output("y", g.Op("MatMul", {x, g.Param("w", absl::StrFormat("f32[%d, 4096]", k))}));
    return *g.Dump({.stage = "kir", .kernel = "MatMulPanels"}, {.cpu = "x86-64-v4"});
  };
  EXPECT_THAT(kernel(40, 768), HasSubstr("mma_f32_pair"));
  EXPECT_THAT(kernel(40, 768), HasSubstr("ahead 8192, next 196608"));
  EXPECT_THAT(kernel(40, 3072), Not(HasSubstr("mma_f32_pair")));
  EXPECT_THAT(kernel(40, 3072), HasSubstr("ahead 8192, next 393216"));
  EXPECT_THAT(kernel(40, 8192), Not(HasSubstr("mma_f32_pair")));
  EXPECT_THAT(kernel(40, 8192), Not(HasSubstr("next")));
  // Several tiles of rows: the first brings the panels, the others ask for a share each. Blocks of rows that read all
  // weights again do not, nor where those stay as they are.
  EXPECT_THAT(kernel(196, 256), HasSubstr("next select(v1, 0, 3856), after select(v1, 0, (v0 - 1) * 3856)"));
  EXPECT_THAT(kernel(4099, 768), Not(HasSubstr("next")));
}

// A last tile of a few rows would take nearly as long as a whole one.
TEST(Products, TilesOfRowsAreMuchAlike) {
  const auto kernel = [](int64_t rows) {
    Graph g;
    const Value x = g.Input("x", absl::StrFormat("f32[%d, 64]", rows));
    g.Output("y", g.Op("MatMul", {x, g.Input("w", "f32[64, 4096]")}));
    return *g.Dump({.stage = "kir", .kernel = "MatMul"}, {.cpu = "x86-64-v4"});
  };
  EXPECT_THAT(kernel(64), HasSubstr("for m in 0..64 by 11 {"));
  EXPECT_THAT(kernel(60), HasSubstr("for m in 0..60 by 12 {"));
}

// Weights of a line of the kernel are read for all lines of the image, where those of a panel are too many.
TEST(Convolutions, AskForTheNextLineOfWeights) {
  const auto kernel = [](int64_t channels) {
    Graph g;
    const Value x = g.Input("x", absl::StrFormat("f32[1, 7, 7, %d]", channels));
    const Value w = g.Param("w", absl::StrFormat("f32[64, %d, 3, 3]", channels));
    g.Output("y", g.Op("Conv", {x, w}, {{"channels_last", true}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
    return *g.Dump({.stage = "kir", .kernel = "MatMulPanels"}, {.cpu = "x86-64-v4"});
  };
  EXPECT_THAT(kernel(512), HasSubstr("next select(v1, 0, 32768), after select(v1, 0, (v0 - 1) * 32768)"));
  EXPECT_THAT(kernel(448), Not(HasSubstr("next")));
}

// Few rows of inputs, which are added to some at a time.
TEST(Products, OfFewRowsOfInputs) {
  for (const char* const type : {"f32", "f64", "bf16"}) {
    for (const char* const rows : {"0", "2", "3", "5", "7", "8"}) {
      ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : $t[$m, 19]
  %1 = Input() {name = "w"} : $t[19, 37]
  %2 = MatMul(%0, %1) {transpose_b = false} : $t[$m, 37]
  return %2
})",
                                      {{"$t", type}, {"$m", rows}}),
                  {{}});
    }
  }
}

// Of the columns of a last panel vectors that have none are left out.
TEST(Products, LeaveOutVectorsOfNoColumns) {
  const auto kernel = [](int64_t columns, const char* cpu) {
    Graph g;
    const Value x = g.Input("x", "f32[64, 96]");
    g.Output("y", g.Op("MatMul", {x, g.Param("w", absl::StrFormat("f32[96, %d]", columns))}));
    return *g.Dump({.stage = "kir", .kernel = "MatMul"}, {.cpu = cpu});
  };
  EXPECT_THAT(kernel(80, "x86-64-v4"), HasSubstr("x1[0 : +min(80 - "));
  EXPECT_THAT(kernel(81, "x86-64-v4"), HasSubstr("x1[:, "));
  EXPECT_THAT(kernel(88, "x86-64-v3"), HasSubstr("x1[0 : +min(88 - "));
  EXPECT_THAT(kernel(89, "x86-64-v3"), HasSubstr("x1[:, "));
  // A pair of panels would be multiplied whole.
  const auto convolution = [](int64_t columns) {
    Graph g;
    const Value x = g.Input("x", "f32[1, 14, 14, 96]");
    const Value w = g.Param("w", absl::StrFormat("f32[%d, 96, 3, 3]", columns));
    g.Output("y", g.Op("Conv", {x, w}, {{"channels_last", true}}));
    return *g.Dump({.stage = "kir", .kernel = "MatMulPanels"}, {.cpu = "x86-64-v4"});
  };
  EXPECT_THAT(convolution(48), Not(HasSubstr("mma_f32_runs_pair")));
  EXPECT_THAT(convolution(49), HasSubstr("mma_f32_runs_pair"));
}

// Lines of the kernel that lie in the padding: by either order of the loops.
TEST(Convolutions, LeaveOutLinesOfPadding) {
  const auto kernel = [](int64_t channels, std::vector<int64_t> pads) {
    Graph g;
    const Value x = g.Input("x", absl::StrFormat("f32[1, 7, 7, %d]", channels));
    const Value w = g.Param("w", absl::StrFormat("f32[64, %d, 3, 3]", channels));
    g.Output("y", g.Op("Conv", {x, w}, {{"channels_last", true}, {"pads", std::move(pads)}}));
    return *g.Dump({.stage = "kir", .kernel = "MatMulPanels"}, {.cpu = "x86-64-v4"});
  };
  EXPECT_THAT(kernel(512, {1, 1, 1, 1}), HasSubstr("for q in max(0, 1 - h) .. min(7, "));
  EXPECT_THAT(kernel(128, {1, 1, 1, 1}), HasSubstr("for h in max(0, 1 - q) .. min(3, "));
  EXPECT_THAT(kernel(128, {0, 1, 0, 1}), HasSubstr("for h in 0..3 {"));
}

// Of a small image each set of results is a convolution of its own; of a larger one they are rows of one.
TEST(Convolutions, TransposedBySets) {
  const auto products = [](int64_t size) {
    Graph g;
    const Value x = g.Input("x", absl::StrFormat("f32[1, 32, %d, %d]", size, size));
    const Value w = g.Param("w", "f32[32, 24, 4, 4]");
    g.Output("y", g.Op("ConvTranspose", {x, w},
                       {{"strides", std::vector<int64_t>{2, 2}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
    const std::string text = *g.Dump({.stage = "kir", .kernel = ""}, {.cpu = "x86-64-v4"});
    int count = 0;
    for (size_t at = 0; (at = text.find("kernel matmul", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(products(16), 4);
  EXPECT_EQ(products(32), 1);
}

// Right sides of many rows that each run has anew: two results of one node, one that is computed, one that two read.
TEST(Products, OfInputsInPanels) {
  for (const char* const columns : {"128", "139", "257"}) {
    ExpectRight(absl::StrReplaceAll(R"(graph g sym S in 128..300 {
  %0 = Input() {name = "x"} : f32[S, 37]
  %1 = Input() {name = "w"} : f32[37, $n]
  %2 = Exp(%1) : f32[37, $n]
  %3:2 = Sort(%2) {axis = 0, descending = false} : f32[37, $n], i64[37, $n]
  %4 = Cast(%3.1) {to = f32} : f32[37, $n]
  %5 = MatMul(%0, %3.0) {transpose_b = false} : f32[S, $n]
  %6 = MatMul(%0, %4) {transpose_b = false} : f32[S, $n]
  %7 = MatMul(%0, %2) {transpose_b = false} : f32[S, $n]
  %8 = Neg(%0) : f32[S, 37]
  %9 = MatMul(%8, %2) {transpose_b = false} : f32[S, $n]
  %10 = Add(%6, %9) : f32[S, $n]
  return %5, %7, %10
})",
                                    {{"$n", columns}}),
                {{{"S", 128}}, {{"S", 131}}, {{"S", 293}}});
  }
}

// Sums so long that no panel of them fits go block by block of k: weights and inputs of every float, one product and
// two, what comes before them and after, blocks of rows.
TEST(Products, OfLongSums) {
  for (const char* const type : {"f32", "f16", "bf16"}) {
    for (const char* const right : {"Param", "Input"}) {
      ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[9, 8209]
  %1 = $r() {name = "w"} : $t[17, 8209]
  %2 = $r() {name = "v"} : $t[17, 8209]
  %3 = Input() {name = "b"} : f32[9, 17]
  %4 = MatMul(%0, %1) {transpose_b = true} : f32[9, 17]
  %5 = Add(%4, %3) : f32[9, 17]
  %6 = Relu(%0) : f32[9, 8209]
  %7 = MatMul(%6, %2) {transpose_b = true} : f32[9, 17]
  %8 = MatMul(%6, %1) {transpose_b = true} : f32[9, 17]
  %9 = Silu(%7) : f32[9, 17]
  %10 = Mul(%9, %8) : f32[9, 17]
  return %5, %10
})",
                                      {{"$r", right}, {"$t", type}}),
                  {{}});
    }
  }
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f32[251, 8201]
  %1 = Param() {name = "w"} : f16[9, 8201]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[251, 9]
  return %2
})",
              {{}});
}

// Of different numbers of columns in one grid, one of whose weights is read by two products in two layouts.
TEST(Products, OfSiblingsInPanels) {
  for (const char* const rows : {"5", "37", "403"}) {
    ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "a"} : f32[$m, 64]
  %1 = Param() {name = "q"} : f32[64, 128]
  %2 = Param() {name = "k"} : f32[64, 64]
  %3 = MatMul(%0, %1) {transpose_b = false} : f32[$m, 128]
  %4 = MatMul(%0, %2) {transpose_b = false} : f32[$m, 64]
  %5 = MatMul(%0, %2) {transpose_b = true} : f32[$m, 64]
  %6 = Sigmoid(%4) : f32[$m, 64]
  %7 = Mul(%6, %5) : f32[$m, 64]
  return %3, %7
})",
                                    {{"$m", rows}}),
                {{}});
  }
}

}  // namespace
}  // namespace quern
