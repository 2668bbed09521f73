// Right sides of products: which become panels or rows of K, and which stay as they lie.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "unit/opt/pass_text.h"

namespace quern::opt {
namespace {

// Halves are read as rows, by floats and by their like.
TEST(HoistWeights, TransposesOncePerWeight) {
  for (const auto& [x, w] : {std::pair("f32", "f16"), {"f32", "bf16"}, {"f16", "f16"}, {"bf16", "bf16"}}) {
    const std::vector<std::pair<std::string, std::string>> types = {{"$x", x}, {"$w", w}};
    EXPECT_EQ(After(HoistWeights,
                    absl::StrReplaceAll(R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : $x[S, 5]
  %1 = Param() {name = "w"} : $w[5, 13]
  %2 = MatMul(%0, %1) {transpose_b = false} : $x[S, 13]
  %3 = Neg(%0) : $x[S, 5]
  %4 = MatMul(%3, %1) {transpose_b = false} : $x[S, 13]
  return %2, %4
}
)",
                                        types),
                    HoistOptions{}),
              absl::StrReplaceAll(R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : $x[S, 5]
  %1 = Param() {name = "w"} : $w[5, 13]
  %2 = Transpose(%1) {perm = [1, 0]} : $w[13, 5]
  %3 = MatMul(%0, %2) {transpose_b = true} : $x[S, 13]
  %4 = Neg(%0) : $x[S, 5]
  %5 = MatMul(%4, %2) {transpose_b = true} : $x[S, 13]
  return %3, %5
}
)",
                                  types));
  }
}

// Of [K, N] whatever the rows; of [N, K] where there always are many. One copy for all that read a weight alike.
TEST(HoistWeights, MakesPanels) {
  EXPECT_EQ(After(HoistWeights, R"(graph g sym S in 9..80, T in 1..80 {
  %0 = Input() {name = "x"} : f32[S, 5]
  %1 = Param() {name = "w"} : f32[5, 13]
  %2 = MatMul(%0, %1) {transpose_b = false} : f32[S, 13]
  %3 = Neg(%0) : f32[S, 5]
  %4 = MatMul(%3, %1) {transpose_b = false} : f32[S, 13]
  %5 = Param() {name = "v"} : f32[64, 5]
  %6 = MatMul(%0, %5) {transpose_b = true} : f32[S, 64]
  %7 = Input() {name = "y"} : f32[T, 5]
  %8 = MatMul(%7, %5) {transpose_b = true} : f32[T, 64]
  return %2, %4, %6, %8
}
)",
                  HoistOptions{}),
            R"(graph g sym S in 9..80, T in 1..80 {
  %0 = Input() {name = "x"} : f32[S, 5]
  %1 = Param() {name = "w"} : f32[5, 13]
  %2 = Pad(%1) {high = [0, 19], low = [0, 0], mode = "constant", value = 0.0} : f32[5, 32]
  %3 = Reshape(%2) {shape = <5, 1, 32>} : f32[5, 1, 32]
  %4 = Transpose(%3) {perm = [1, 0, 2]} : f32[1, 5, 32]
  %5 = MatMulPanels(%0, %4) {columns = 13} : f32[S, 13]
  %6 = Neg(%0) : f32[S, 5]
  %7 = MatMulPanels(%6, %4) {columns = 13} : f32[S, 13]
  %8 = Param() {name = "v"} : f32[64, 5]
  %9 = Reshape(%8) {shape = <2, 32, 5>} : f32[2, 32, 5]
  %10 = Transpose(%9) {perm = [0, 2, 1]} : f32[2, 5, 32]
  %11 = MatMulPanels(%0, %10) {columns = 64} : f32[S, 64]
  %12 = Input() {name = "y"} : f32[T, 5]
  %13 = MatMul(%12, %8) {transpose_b = true} : f32[T, 64]
  return %5, %7, %11, %13
}
)");
}

// Of bytes by bytes in quads, whatever the rows, with zeros behind the last column and the last k.
TEST(HoistWeights, MakesPanelsOfQuads) {
  const char* const kText = R"(graph g sym S in 1..80 {
  %0 = Input() {name = "x"} : u8[S, 6]
  %1 = Param() {name = "w"} : i8[6, 13]
  %2 = MatMul(%0, %1) {transpose_b = false} : i32[S, 13]
  %3 = Param() {name = "v"} : u8[64, 6]
  %4 = MatMul(%0, %3) {transpose_b = true} : i32[S, 64]
  %5 = Input() {name = "y"} : i8[6, 64]
  %6 = MatMul(%0, %5) {transpose_b = false} : i32[S, 64]
  return %2, %4, %6
}
)";
  EXPECT_EQ(After(HoistWeights, kText, HoistOptions{}), R"(graph g sym S in 1..80 {
  %0 = Input() {name = "x"} : u8[S, 6]
  %1 = Param() {name = "w"} : i8[6, 13]
  %2 = Pad(%1) {high = [2, 19], low = [0, 0], mode = "constant", value = 0.0} : i8[8, 32]
  %3 = Reshape(%2) {shape = <2, 4, 1, 32>} : i8[2, 4, 1, 32]
  %4 = Transpose(%3) {perm = [2, 0, 3, 1]} : i8[1, 2, 32, 4]
  %5 = MatMulPanels(%0, %4) {columns = 13} : i32[S, 13]
  %6 = Param() {name = "v"} : u8[64, 6]
  %7 = Pad(%6) {high = [0, 2], low = [0, 0], mode = "constant", value = 0.0} : u8[64, 8]
  %8 = Reshape(%7) {shape = <2, 32, 2, 4>} : u8[2, 32, 2, 4]
  %9 = Transpose(%8) {perm = [0, 2, 1, 3]} : u8[2, 2, 32, 4]
  %10 = MatMulPanels(%0, %9) {columns = 64} : i32[S, 64]
  %11 = Input() {name = "y"} : i8[6, 64]
  %12 = MatMul(%0, %11) {transpose_b = false} : i32[S, 64]
  return %5, %10, %12
}
)");
  EXPECT_THAT(After(HoistWeights, kText, HoistOptions{.panels = false}),
              testing::Not(testing::HasSubstr("MatMulPanels")));
  // For blocks of threads panels that a graph has are rows again, without what is behind the last k.
  EXPECT_THAT(After(HoistWeights, R"(graph g {
  %0 = Input() {name = "x"} : i8[37, 6]
  %1 = Input() {name = "w"} : i8[2, 2, 32, 4]
  %2 = MatMulPanels(%0, %1) {columns = 41} : i32[37, 41]
  return %2
}
)",
                    HoistOptions{.panels = false}),
              testing::HasSubstr("start = <0>, step = [], stop = <6>} : i8[64, 6]"));
}

// Of bf16 by bf16 in pairs, where the target multiplies them and every run has many rows; not of an odd K.
TEST(HoistWeights, MakesPanelsOfPairs) {
  const char* const kText = R"(graph g sym S in 9..80, T in 1..80 {
  %0 = Input() {name = "x"} : bf16[S, 6]
  %1 = Param() {name = "w"} : bf16[6, 13]
  %2 = MatMul(%0, %1) {transpose_b = false} : bf16[S, 13]
  %3 = Param() {name = "v"} : bf16[64, 6]
  %4 = MatMul(%0, %3) {transpose_b = true} : bf16[S, 64]
  %5 = Input() {name = "y"} : bf16[T, 6]
  %6 = MatMul(%5, %3) {transpose_b = true} : bf16[T, 64]
  %7 = Input() {name = "z"} : bf16[S, 5]
  %8 = Param() {name = "u"} : bf16[64, 5]
  %9 = MatMul(%7, %8) {transpose_b = true} : bf16[S, 64]
  return %2, %4, %6, %9
}
)";
  EXPECT_EQ(After(HoistWeights, kText, HoistOptions{.pairs = true}), R"(graph g sym S in 9..80, T in 1..80 {
  %0 = Input() {name = "x"} : bf16[S, 6]
  %1 = Param() {name = "w"} : bf16[6, 13]
  %2 = Pad(%1) {high = [0, 19], low = [0, 0], mode = "constant", value = 0.0} : bf16[6, 32]
  %3 = Reshape(%2) {shape = <3, 2, 1, 32>} : bf16[3, 2, 1, 32]
  %4 = Transpose(%3) {perm = [2, 0, 3, 1]} : bf16[1, 3, 32, 2]
  %5 = MatMulPanels(%0, %4) {columns = 13} : bf16[S, 13]
  %6 = Param() {name = "v"} : bf16[64, 6]
  %7 = Reshape(%6) {shape = <2, 32, 3, 2>} : bf16[2, 32, 3, 2]
  %8 = Transpose(%7) {perm = [0, 2, 1, 3]} : bf16[2, 3, 32, 2]
  %9 = MatMulPanels(%0, %8) {columns = 64} : bf16[S, 64]
  %10 = Input() {name = "y"} : bf16[T, 6]
  %11 = MatMul(%10, %6) {transpose_b = true} : bf16[T, 64]
  %12 = Input() {name = "z"} : bf16[S, 5]
  %13 = Param() {name = "u"} : bf16[64, 5]
  %14 = MatMul(%12, %13) {transpose_b = true} : bf16[S, 64]
  return %5, %9, %11, %14
}
)");
  EXPECT_THAT(After(HoistWeights, kText, HoistOptions{}), testing::Not(testing::HasSubstr("MatMulPanels")));
  const std::string panels = R"(graph g {
  %0 = Input() {name = "x"} : bf16[37, 6]
  %1 = Input() {name = "w"} : bf16[2, 3, 32, 2]
  %2 = MatMulPanels(%0, %1) {columns = 41} : bf16[37, 41]
  return %2
}
)";
  EXPECT_EQ(After(HoistWeights, panels, HoistOptions{.panels = false}), R"(graph g {
  %0 = Input() {name = "x"} : bf16[37, 6]
  %1 = Input() {name = "w"} : bf16[2, 3, 32, 2]
  %2 = Transpose(%1) {perm = [0, 2, 1, 3]} : bf16[2, 32, 3, 2]
  %3 = Reshape(%2) {shape = <64, 6>} : bf16[64, 6]
  %4 = Slice(%3) {axis = [0], start = <0>, step = [], stop = <41>} : bf16[41, 6]
  %5 = MatMul(%0, %4) {transpose_b = true} : bf16[37, 41]
  return %5
}
)");
}

// What each run has anew, once for all that read the same result of a node.
TEST(HoistWeights, MakesPanelsOfWhatManyRowsMeet) {
  const auto of = [](const char* rows, const char* k, const char* columns) {
    return absl::StrReplaceAll(R"(graph g sym S in 128..300 {
  %0 = Input() {name = "x"} : f32[$m, $k]
  %1 = Input() {name = "w"} : f32[$k, $n]
  %2:2 = Sort(%1) {axis = 0, descending = false} : f32[$k, $n], i64[$k, $n]
  %3 = MatMul(%0, %2.0) {transpose_b = false} : f32[$m, $n]
  %4 = MatMul(%0, %1) {transpose_b = false} : f32[$m, $n]
  %5 = Neg(%0) : f32[$m, $k]
  %6 = MatMul(%5, %1) {transpose_b = false} : f32[$m, $n]
  return %3, %4, %6
}
)",
                               {{"$m", rows}, {"$k", k}, {"$n", columns}});
  };
  EXPECT_EQ(After(HoistWeights, of("S", "37", "128"), HoistOptions{}), R"(graph g sym S in 128..300 {
  %0 = Input() {name = "x"} : f32[S, 37]
  %1 = Input() {name = "w"} : f32[37, 128]
  %2:2 = Sort(%1) {axis = 0, descending = false} : f32[37, 128], i64[37, 128]
  %3 = Reshape(%2.0) {shape = <37, 4, 32>} : f32[37, 4, 32]
  %4 = Transpose(%3) {perm = [1, 0, 2]} : f32[4, 37, 32]
  %5 = MatMulPanels(%0, %4) {columns = 128} : f32[S, 128]
  %6 = Reshape(%1) {shape = <37, 4, 32>} : f32[37, 4, 32]
  %7 = Transpose(%6) {perm = [1, 0, 2]} : f32[4, 37, 32]
  %8 = MatMulPanels(%0, %7) {columns = 128} : f32[S, 128]
  %9 = Neg(%0) : f32[S, 37]
  %10 = MatMulPanels(%9, %7) {columns = 128} : f32[S, 128]
  return %5, %8, %10
}
)");
  for (const std::string& text : {of("127", "37", "128"), of("S", "37", "127"), of("128", "4097", "128")})
    EXPECT_EQ(After(HoistWeights, text, HoistOptions{}), text);
}

TEST(HoistWeights, TellsResultsOfOneNodeApart) {
  const std::string made = After(HoistWeights, R"(graph g {
  %0 = Input() {name = "x"} : f32[128, 128]
  %1:2 = Qr(%0) : f32[128, 128], f32[128, 128]
  %2 = MatMul(%0, %1.0) {transpose_b = false} : f32[128, 128]
  %3 = MatMul(%0, %1.1) {transpose_b = false} : f32[128, 128]
  return %2, %3
}
)",
                                 HoistOptions{});
  EXPECT_NE(made.find("Reshape(%1.0)"), made.npos) << made;
  EXPECT_NE(made.find("Reshape(%1.1)"), made.npos) << made;
}

// Those of a graph are rows where nothing multiplies by panels.
TEST(HoistWeights, UnpacksPanels) {
  const char* const panels = R"(graph g {
  %0 = Input() {name = "x"} : f32[37, 5]
  %1 = Param() {name = "w"} : f32[2, 5, 32]
  %2 = MatMulPanels(%0, %1) {columns = 41} : f32[37, 41]
  return %2
}
)";
  EXPECT_EQ(After(HoistWeights, panels, HoistOptions{}), panels);
  EXPECT_EQ(After(HoistWeights, panels, HoistOptions{.panels = false}), R"(graph g {
  %0 = Input() {name = "x"} : f32[37, 5]
  %1 = Param() {name = "w"} : f32[2, 5, 32]
  %2 = Transpose(%1) {perm = [0, 2, 1]} : f32[2, 32, 5]
  %3 = Reshape(%2) {shape = <64, 5>} : f32[64, 5]
  %4 = Slice(%3) {axis = [0], start = <0>, step = [], stop = <41>} : f32[41, 5]
  %5 = MatMul(%0, %4) {transpose_b = true} : f32[37, 41]
  return %5
}
)");
}

TEST(HoistWeights, MakesNoPanelsOfFewColumnsOrForBlocksOfThreads) {
  const char* const few = R"(graph g {
  %0 = Input() {name = "x"} : f32[37, 5]
  %1 = Param() {name = "w"} : f32[8, 5]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[37, 8]
  return %2
}
)";
  EXPECT_EQ(After(HoistWeights, few, HoistOptions{}), few);
  const char* const many = R"(graph g {
  %0 = Input() {name = "x"} : f32[37, 5]
  %1 = Param() {name = "w"} : f32[64, 5]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[37, 64]
  return %2
}
)";
  EXPECT_EQ(After(HoistWeights, many, HoistOptions{.panels = false}), many);
}

TEST(HoistWeights, LeavesActivations) {
  ExpectUnchanged(HoistWeights, R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[S, 5]
  %1 = Input() {name = "y"} : f32[5, 3]
  %2 = MatMul(%0, %1) {transpose_b = false} : f32[S, 3]
  return %2
}
)",
                  HoistOptions{});
}

}  // namespace
}  // namespace quern::opt
