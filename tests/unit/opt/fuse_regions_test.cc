// Which regions graphs fuse into, and what must not be fused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "codegen/region.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ir::Graph Parsed(std::string_view text) {
  StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : ir::Graph();
}

ir::Graph Fused(const ir::Graph& graph, FusionReport* report = nullptr) {
  StatusOr<ir::Graph> fused = FuseRegions(graph, {.families = codegen::Families()}, report);
  EXPECT_TRUE(fused.ok()) << fused.status();
  if (!fused.ok()) return {};
  const Status verified = ir::Verify(*fused);
  EXPECT_TRUE(verified.ok()) << verified;
  return *std::move(fused);
}

// "matmul: MatMul Silu -> 2", or the op of a view, for each node that is no leaf.
std::vector<std::string> Regions(const ir::Graph& graph) {
  std::vector<std::string> rows;
  for (const ir::Node& node : graph.nodes()) {
    if (IsLeaf(node)) continue;
    if (node.bodies.empty()) {
      rows.push_back(node.op->name);
      continue;
    }
    std::vector<std::string> ops;
    for (const ir::Node& inner : node.body().nodes()) {
      if (!IsLeaf(inner)) ops.push_back(inner.op->name);
    }
    rows.push_back(
        absl::StrCat(node.attributes.String("family"), ": ", absl::StrJoin(ops, " "), " -> ", node.results.size()));
  }
  return rows;
}
std::vector<std::string> RegionsOf(std::string_view text) { return Regions(Fused(Parsed(text))); }

// All passes before fusion, in the order of the pipeline.
ir::Graph Prepared(ir::Graph graph) {
  for (const auto pass : {&ExpandComposites, &Simplify, &FoldConstants, &Cse, &Dce}) {
    StatusOr<ir::Graph> next = pass(graph);
    EXPECT_TRUE(next.ok()) << next.status();
    if (next.ok()) graph = *std::move(next);
  }
  StatusOr<ir::Graph> quantised = QuantiseActivations(graph);
  EXPECT_TRUE(quantised.ok()) << quantised.status();
  return *std::move(quantised);
}

TEST(FuseRegions, ElementwiseChainIsOneMap) {
  EXPECT_EQ(ir::Print(Fused(Parsed(R"(graph g sym S in 1..64, T in 1..2 {
  %0 = Input() {name = "x"} : f32[S, 37]
  %1 = Input() {name = "b"} : f32[37]
  %2 = Add(%0, %1) : f32[S, 37]
  %3 = Silu(%2) : f32[S, 37]
  %4 = Constant() hex 0000003f : f32[]
  %5 = Mul(%3, %4) : f32[S, 37]
  return %5
})"))),
            R"(graph g sym S in 1..64, T in 1..2 {
  %0 = Input() {name = "x"} : f32[S, 37]
  %1 = Input() {name = "b"} : f32[37]
  %2 = Constant() hex 0000003f : f32[]
  %3 = Region(%0, %1) {family = "map"} : f32[S, 37]  @"" by "fuse_regions" body graph body sym S in 1..64 {
    %0 = Input() {name = "i0"} : f32[S, 37]
    %1 = Input() {name = "i1"} : f32[37]
    %2 = Add(%0, %1) : f32[S, 37]
    %3 = Silu(%2) : f32[S, 37]
    %4 = Constant() hex 0000003f : f32[]
    %5 = Mul(%3, %4) : f32[S, 37]
    return %5
  }
  return %3
}
)");
}

TEST(FuseRegions, SoftmaxIsOneRowProgram) {
  const ir::Graph graph = Prepared(Parsed(R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[3, S, 41]
  %1 = Softmax(%0) {axis = -1} : f32[3, S, 41]
  return %1
})"));
  EXPECT_THAT(Regions(Fused(graph)), ElementsAre("lines: Reduce Sub Exp Reduce Recip Mul -> 1"));
}

TEST(FuseRegions, ResidualNormAndQuantizeIsOneRowProgram) {
  const ir::Graph graph = Prepared(Parsed(R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 512]
  %1 = Input() {name = "r"} : f32[S, 512]
  %2 = Param() {name = "g"} : f32[512]
  %3:2 = FusedResidualRmsNorm(%0, %1, %2) {eps = 1e-05} : f32[S, 512], f32[S, 512]
  %4 = Param() {name = "w"} : q4_K[512, 512]
  %5 = MatMul(%3.0, %4) {transpose_b = true} : f32[S, 512]
  %6 = Add(%5, %3.1) : f32[S, 512]
  return %6
})"));
  EXPECT_THAT(Regions(Fused(graph)),
              ElementsAre("lines: Add Mul Reduce Add Rsqrt Mul Mul Quantize -> 2", "matmul: MatMul Add -> 1"));
}

TEST(FuseRegions, ReductionOverAnyAxesTakesPrologueAndEpilogue) {
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 19, 13]
  %1 = Exp(%0) : f32[5, 19, 13]
  %2 = Reduce(%1) {axes = [0], keep_dim = false, op = "sum"} : f32[19, 13]
  %3 = Tanh(%2) : f32[19, 13]
  return %3
})"),
              ElementsAre("lines: Exp Reduce Tanh -> 1"));
}

TEST(FuseRegions, SoftmaxOverAnyAxisIsOneProgram) {
  const ir::Graph graph = Prepared(Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[4, 5, 13]
  %1 = Softmax(%0) {axis = 1} : f32[4, 5, 13]
  return %1
})"));
  EXPECT_THAT(Regions(Fused(graph)), ElementsAre("lines: Reduce Sub Exp Reduce Recip Mul -> 1"));
}

// Statistics over groups of channels, the scale and activation over channels: the Reshapes are no border.
TEST(FuseRegions, GroupNormAndActivationAreOneProgram) {
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 6, 5, 7]
  %1 = Reshape(%0) {shape = <2, 3, 70>} : f32[2, 3, 70]
  %2 = Reduce(%1) {axes = [-1], keep_dim = true, op = "mean"} : f32[2, 3, 1]
  %3 = Sub(%1, %2) : f32[2, 3, 70]
  %4 = Reshape(%3) {shape = <2, 6, 5, 7>} : f32[2, 6, 5, 7]
  %5 = Param() {name = "g"} : f32[6, 1, 1]
  %6 = Mul(%4, %5) : f32[2, 6, 5, 7]
  %7 = Silu(%6) : f32[2, 6, 5, 7]
  return %7
})"),
              ElementsAre("Reshape", "lines: Reduce Sub Reshape Mul Silu -> 1"));
}

TEST(FuseRegions, LinesOfOneRegionRunAlongTheSameAxes) {
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 13]
  %1 = Reduce(%0) {axes = [0], keep_dim = false, op = "sum"} : f32[13]
  %2 = Reduce(%0) {axes = [1], keep_dim = false, op = "sum"} : f32[5]
  %3 = Input() {name = "y"} : f32[7, 7]
  %4 = Reduce(%3) {axes = [0], keep_dim = true, op = "sum"} : f32[1, 7]
  %5 = Reduce(%3) {axes = [1], keep_dim = true, op = "sum"} : f32[7, 1]
  %6 = Add(%4, %5) : f32[7, 7]
  return %1, %2, %6
})"),
              ElementsAre("lines: Reduce -> 1", "lines: Reduce -> 1", "lines: Reduce -> 1", "lines: Reduce -> 1",
                          "map: Add -> 1"));
}

// What a scan makes is known only where it has come by.
TEST(FuseRegions, ScansTakeWhatGoesAlongButNoFoldOfTheirResult) {
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 13]
  %1 = Reduce(%0) {axes = [1], keep_dim = true, op = "max"} : f32[5, 1]
  %2 = Sub(%0, %1) : f32[5, 13]
  %3 = CumSum(%2) {axis = 1} : f32[5, 13]
  %4 = Tanh(%3) : f32[5, 13]
  %5 = Reduce(%4) {axes = [1], keep_dim = true, op = "sum"} : f32[5, 1]
  return %5
})"),
              ElementsAre("lines: Reduce Sub CumSum Tanh -> 1", "lines: Reduce -> 1"));
}

// Selects in front of every load are what a join behind an index map would cost.
// Each element of a window would be searched for, as often as windows have it.
TEST(FuseRegions, WindowsDoNotSlideOverWhatIsJoinedOrRepeated) {
  const std::string head = R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 5, 7, 11]
  %1 = Input() {name = "y"} : f32[2, 3, 14, 11]
  %2 = Param() {name = "w"} : f32[37, 8, 3, 3]
  %3 = Reshape(%0) {shape = <2, 5, 7, 1, 11>} : f32[2, 5, 7, 1, 11]
  %4 = Expand(%3) {shape = <2, 5, 7, 2, 11>} : f32[2, 5, 7, 2, 11]
  %5 = Reshape(%4) {shape = <2, 5, 14, 11>} : f32[2, 5, 14, 11]
  %6 = Concat(%5, %1) {axis = 1} : f32[2, 8, 14, 11]
  %7 = )";
  for (const std::string windows : {R"(Conv(%6, %2) {pads = [1, 1, 1, 1]} : f32[2, 37, 14, 11])",
                                    R"(Pool(%6) {kind = "max", kernel = [3, 3]} : f32[2, 8, 12, 9])"}) {
    const std::vector<std::string> regions =
        Regions(Fused(Prepared(Parsed(absl::StrCat(head, windows, "\n  return %7\n}")))));
    EXPECT_THAT(regions, ::testing::Contains("map: Expand Reshape Concat -> 1"));
    EXPECT_THAT(regions, ::testing::Contains(HasSubstr("Window")));
  }
}

// Nor is an element looked up for every window that has it.
TEST(FuseRegions, LookedUpOnceBeforeWindows) {
  for (const std::string windows : {R"(Conv(%4, %2) {pads = [1, 1, 1, 1]} : f32[2, 37, 14, 11])",
                                    R"(Pool(%4) {kind = "max", kernel = [3, 3]} : f32[2, 8, 12, 9])"}) {
    const std::string text = R"(graph g {
  %0 = Input() {name = "x"} : u8[2, 8, 14, 11]
  %1 = Param() {name = "table"} : f32[256]
  %2 = Param() {name = "w"} : f32[37, 8, 3, 3]
  %3 = Cast(%0) {to = i32} : i32[2, 8, 14, 11]
  %4 = Gather(%1, %3) {axis = 0} : f32[2, 8, 14, 11]
  %5 = )";
    EXPECT_THAT(Regions(Fused(Prepared(Parsed(absl::StrCat(text, windows, "\n  return %5\n}"))))),
                ::testing::Contains("map: Cast Gather -> 1"));
  }
}

// No Window is memory, whoever else reads the image: a residual, another convolution, a pool.
TEST(FuseRegions, WindowsAreReadOnTheWay) {
  for (const int groups : {1, 8}) {
    const std::string conv = absl::StrCat("{groups = ", groups, ", pads = [1, 1, 1, 1]} : f32[1, 8, 14, 11]");
    for (const std::string& others :
         {absl::StrCat("%4 = Add(%3, %0) : f32[1, 8, 14, 11]"),
          absl::StrCat("%4 = Conv(%0, %2) ", conv, "  %5 = Mul(%3, %4) : f32[1, 8, 14, 11]"),
          absl::StrCat("%4 = Pool(%0) {kind = \"mean\", kernel = [3, 3], pads = [1, 1, 1, 1]} "
                       ": f32[1, 8, 14, 11]  %5 = Mul(%3, %4) : f32[1, 8, 14, 11]")}) {
      const std::string text =
          absl::StrReplaceAll(absl::StrCat(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, 8, 14, 11]
  %1 = Param() {name = "w"} : f32[8, $k, 3, 3]
  %2 = Param() {name = "v"} : f32[8, $k, 3, 3]
  %3 = Conv(%0, %1) )",
                                           conv, "\n  ", absl::StrReplaceAll(others, {{"  ", "\n  "}}), "\n  return ",
                                           others.find("%5") == std::string::npos ? "%4" : "%5", "\n}"),
                              {{"$k", absl::StrCat(8 / groups)}});
      SCOPED_TRACE(text);
      for (const std::string& region : Regions(Fused(Prepared(Parsed(text))))) {
        const bool alone = region.find("Window") != std::string::npos && region.find("MatMul") == std::string::npos &&
                           region.find("Reduce") == std::string::npos;
        EXPECT_FALSE(alone) << region;
      }
    }
  }
}

TEST(FuseRegions, JoinsStandAtThePlaceOfTheResult) {
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 13]
  %1 = Input() {name = "y"} : f32[3, 13]
  %2 = Exp(%0) : f32[5, 13]
  %3 = Concat(%2, %1) {axis = 0} : f32[8, 13]
  %4 = Tanh(%3) : f32[8, 13]
  return %4
})"),
              ElementsAre("map: Exp Concat Tanh -> 1"));
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 13]
  %1 = Input() {name = "y"} : f32[3, 13]
  %2 = Concat(%0, %1) {axis = 0} : f32[8, 13]
  %3 = Transpose(%2) {perm = [1, 0]} : f32[13, 8]
  return %3
})"),
              ElementsAre("map: Concat -> 1", "map: Transpose -> 1"));
}

// One layer as the decoder block lowers it, over 4-bit weights; $ROWS is SEQ or a number.
std::string Layer(const std::string& rows, const std::string& style = "gptj") {
  const std::string symbols = rows == "SEQ" ? "PAST_SEQ in 0..255, SEQ in 1..256" : "PAST_SEQ in 0..255";
  return absl::StrReplaceAll(R"(graph layer sym $SYMBOLS {
  %0 = Input() {name = "x"} : f32[$ROWS, 256]
  %1 = Param() {name = "attn_norm"} : f32[256]
  %2 = Param() {name = "q"} : q4_K[256, 256]
  %3 = Param() {name = "k"} : q4_K[128, 256]
  %4 = Param() {name = "v"} : q6_K[128, 256]
  %5 = Param() {name = "o"} : q4_K[256, 256]
  %6 = Param() {name = "ffn_norm"} : f32[256]
  %7 = Param() {name = "gate"} : q4_K[512, 256]
  %8 = Param() {name = "up"} : q4_K[512, 256]
  %9 = Param() {name = "down"} : q6_K[256, 512]
  %10 = Param() {name = "cos"} : f32[512, 16]
  %11 = Param() {name = "sin"} : f32[512, 16]
  %12 = Input() {name = "k_cache"} : f16[512, 4, 32]
  %13 = Input() {name = "v_cache"} : f16[512, 4, 32]
  %14 = Narrow(%10) {axis = 0, length = <$ROWS>, start = <PAST_SEQ>} : f32[$ROWS, 16]
  %15 = Narrow(%11) {axis = 0, length = <$ROWS>, start = <PAST_SEQ>} : f32[$ROWS, 16]
  %16 = RmsNorm(%0, %1) {eps = 1e-05} : f32[$ROWS, 256]  @"layers.0/attention_norm"
  %17 = MatMul(%16, %2) {transpose_b = true} : f32[$ROWS, 256]  @"layers.0/attention/q"
  %18 = MatMul(%16, %3) {transpose_b = true} : f32[$ROWS, 128]  @"layers.0/attention/k"
  %19 = MatMul(%16, %4) {transpose_b = true} : f32[$ROWS, 128]  @"layers.0/attention/v"
  %20 = Rope(%17, %14, %15) {head_dim = 32, n_rot = 32, packed = true, style = "$STYLE"} : f32[$ROWS, 256]
  %21 = Rope(%18, %14, %15) {head_dim = 32, n_rot = 32, packed = true, style = "$STYLE"} : f32[$ROWS, 128]
  %22 = Cast(%21) {to = f16} : f16[$ROWS, 128]
  %23 = Reshape(%22) {shape = <$ROWS, 4, 32>} : f16[$ROWS, 4, 32]
  %24 = Update(%12, %23) {axis = 0, start = <PAST_SEQ>} : f16[512, 4, 32]
  %25 = Narrow(%24) {axis = 0, length = <PAST_SEQ + $ROWS>, start = <0>} : f16[PAST_SEQ + $ROWS, 4, 32]
  %26 = Reshape(%25) {shape = <1, PAST_SEQ + $ROWS, 128>} : f16[1, PAST_SEQ + $ROWS, 128]
  %27 = Cast(%19) {to = f16} : f16[$ROWS, 128]
  %28 = Reshape(%27) {shape = <$ROWS, 4, 32>} : f16[$ROWS, 4, 32]
  %29 = Update(%13, %28) {axis = 0, start = <PAST_SEQ>} : f16[512, 4, 32]
  %30 = Narrow(%29) {axis = 0, length = <PAST_SEQ + $ROWS>, start = <0>} : f16[PAST_SEQ + $ROWS, 4, 32]
  %31 = Reshape(%30) {shape = <1, PAST_SEQ + $ROWS, 128>} : f16[1, PAST_SEQ + $ROWS, 128]
  %32 = Reshape(%20) {shape = <1, $ROWS, 256>} : f32[1, $ROWS, 256]
  %33 = Attention(%32, %26, %31) {head_dim = 32, heads = 8, kv_heads = 4, layout = "packed",
      mask = "causal", scale = 0.0, softcap = 0.0, window = 0} : f32[1, $ROWS, 256]
  %34 = Reshape(%33) {shape = <$ROWS, 256>} : f32[$ROWS, 256]
  %35 = MatMul(%34, %5) {transpose_b = true} : f32[$ROWS, 256]  @"layers.0/attention/o"
  %36:2 = FusedResidualRmsNorm(%35, %0, %6) {eps = 1e-05} : f32[$ROWS, 256], f32[$ROWS, 256]
  %37 = MatMul(%36.0, %7) {transpose_b = true} : f32[$ROWS, 512]  @"layers.0/ffn/gate"
  %38 = MatMul(%36.0, %8) {transpose_b = true} : f32[$ROWS, 512]  @"layers.0/ffn/up"
  %39 = Silu(%37) : f32[$ROWS, 512]
  %40 = Mul(%39, %38) : f32[$ROWS, 512]
  %41 = MatMul(%40, %9) {transpose_b = true} : f32[$ROWS, 256]  @"layers.0/ffn/down"
  %42 = Add(%36.1, %41) : f32[$ROWS, 256]
  return %42, %24, %29
  donate "k_cache" -> 1
  donate "v_cache" -> 2
})",
                             {{"$SYMBOLS", symbols}, {"$ROWS", rows}, {"$STYLE", style}});
}

TEST(FuseRegions, DecoderLayerIsSevenRegions) {
  for (const char* rows : {"SEQ", "1", "7"}) {
    SCOPED_TRACE(rows);
    FusionReport report;
    std::vector<std::string> rest;
    const std::vector<std::string> regions = Regions(Fused(Prepared(Parsed(Layer(rows))), &report));
    for (const std::string& row : regions) {
      if (row != "Narrow" && row != "Reshape") rest.push_back(row);
    }
    EXPECT_THAT(
        rest, ElementsAre("lines: Mul Reduce Add Rsqrt Mul Mul Quantize -> 1",
                          "matmul: MatMul Rope Cast Reshape Update MatMul Cast Reshape Update MatMul Rope Reshape -> 3",
                          "attention: Attention Reshape Quantize -> 1", "matmul: MatMul Add -> 1",
                          "lines: Mul Reduce Add Rsqrt Mul Mul Quantize -> 1",
                          "matmul: MatMul Silu MatMul Mul Quantize -> 1", "matmul: MatMul Add -> 1"))
        << report.ToString();
    EXPECT_THAT(report.ToString(), HasSubstr("matmul layers.0/attention/q: MatMul Rope"));
  }
}

TEST(FuseRegions, PairsAcrossAHeadNeedAWholeChunk) {
  // A few rows keep chunks of columns at hand; many rows work on panels narrower than a head.
  EXPECT_THAT(Regions(Fused(Prepared(Parsed(Layer("1", "neox")))))[3], HasSubstr("MatMul Rope"));
  EXPECT_THAT(Regions(Fused(Prepared(Parsed(Layer("SEQ", "neox")))))[3], ::testing::Not(HasSubstr("Rope")));
}

TEST(FuseRegions, DirectAndFusableSwiGluAreOneRegion) {
  constexpr const char* kHead = R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 256]
  %1 = Param() {name = "up"} : q4_K[512, 256]
  %2 = Param() {name = "gate"} : q4_K[512, 256]
  %3 = Param() {name = "down"} : q4_K[256, 512]
  %4 = MatMul(%0, %1) {transpose_b = true} : f32[S, 512]
  %5 = MatMul(%0, %2) {transpose_b = true} : f32[S, 512]
)";
  const ir::Graph direct = Fused(Prepared(Parsed(absl::StrCat(kHead, R"(
  %6 = Concat(%4, %5) {axis = -1} : f32[S, 1024]
  %7 = FusedSwiGLU(%6) {gate_first = false} : f32[S, 512]
  %8 = MatMul(%7, %3) {transpose_b = true} : f32[S, 256]
  return %8
})"))));
  const ir::Graph fusable = Fused(Prepared(Parsed(absl::StrCat(kHead, R"(
  %6 = Silu(%5) : f32[S, 512]
  %7 = Mul(%4, %6) : f32[S, 512]
  %8 = MatMul(%7, %3) {transpose_b = true} : f32[S, 256]
  return %8
})"))));
  EXPECT_THAT(Regions(fusable), ElementsAre("lines: Quantize -> 1", "matmul: MatMul MatMul Silu Mul Quantize -> 1",
                                            "matmul: MatMul -> 1"));
  EXPECT_TRUE(ir::SameGraph(direct, fusable)) << ir::Print(direct) << ir::Print(fusable);
}

TEST(FuseRegions, SumOfTwoProductsBelongsToTheLater) {
  EXPECT_THAT(RegionsOf(R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 32]
  %1 = Input() {name = "y"} : f32[S, 16]
  %2 = Param() {name = "a"} : f32[8, 32]
  %3 = Param() {name = "b"} : f32[8, 16]
  %4 = MatMul(%0, %2) {transpose_b = true} : f32[S, 8]
  %5 = MatMul(%1, %3) {transpose_b = true} : f32[S, 8]
  %6 = Add(%4, %5) : f32[S, 8]
  return %6
})"),
              ElementsAre("matmul: MatMul -> 1", "matmul: MatMul Add -> 1"));
}

// ---------------------------------------------------------------------------------------------------------------------
// What must not happen.

TEST(FuseSoundness, OutputsStayResults) {
  const ir::Graph fused = Fused(Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 32]
  %1 = Param() {name = "w"} : f32[8, 32]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[5, 8]
  %3 = Relu(%2) : f32[5, 8]
  return %2, %3
})"));
  EXPECT_THAT(Regions(fused), ElementsAre("matmul: MatMul Relu -> 2"));
  EXPECT_EQ(fused.outputs[0], (ir::Value{fused.outputs[1].node, 0}));
  EXPECT_EQ(fused.outputs[1].result, 1);
}

TEST(FuseSoundness, AnOutputOfOtherExtentsEndsTheRegion) {
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[5]
  %1 = Exp(%0) : f32[5]
  %2 = Input() {name = "y"} : f32[3, 5]
  %3 = Add(%2, %1) : f32[3, 5]
  return %1, %3
})"),
              ElementsAre("map: Exp -> 1", "map: Add -> 1"));
}

TEST(FuseSoundness, OtherUsersKeepTheValue) {
  // Exp is read by a gather that needs all of it: it becomes a second result, and is computed once.
  FusionReport report;
  const ir::Graph fused = Fused(Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[7, 5]
  %1 = Exp(%0) : f32[7, 5]
  %2 = Input() {name = "i"} : i32[9]
  %3 = Gather(%1, %2) {axis = 0} : f32[9, 5]
  %4 = Reduce(%3) {axes = [0], keep_dim = true, op = "sum"} : f32[1, 5]
  %5 = Div(%1, %4) : f32[7, 5]
  return %5
})"),
                                &report);
  EXPECT_THAT(Regions(fused), ElementsAre("map: Exp -> 1", "lines: Gather Reduce -> 1", "map: Div -> 1"));
  EXPECT_THAT(report.ToString(), HasSubstr("missed: Div %5 not fused with Exp %1: another region lies between them"));
}

TEST(FuseSoundness, NothingIsComputedForEveryRowAgain) {
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "scale"} : f32[5]
  %1 = Exp(%0) : f32[5]
  %2 = Input() {name = "x"} : f32[64, 5]
  %3 = Mul(%2, %1) : f32[64, 5]
  return %3
})"),
              ElementsAre("map: Exp -> 1", "map: Mul -> 1"));
}

// A rotation reads each element for itself and for its partner.
TEST(FuseSoundness, WhatIsReadTwiceIsNotComputedTwice) {
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 64]
  %1 = Exp(%0) : f32[5, 64]
  %2 = Input() {name = "cos"} : f32[5, 16]
  %3 = Input() {name = "sin"} : f32[5, 16]
  %4 = Rope(%1, %2, %3) {head_dim = 32, n_rot = 32, packed = true, style = "neox"} : f32[5, 64]
  return %4
})"),
              ElementsAre("map: Exp -> 1", "map: Rope -> 1"));
}

// Heads that are no whole chunks of columns: a partner may lie in another chunk.
TEST(FuseSoundness, RotationsOfOddHeadsStayBesideTheirProduct) {
  constexpr const char* kGraph = R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 64]
  %1 = Param() {name = "w"} : f32[$N, 64]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[5, $N]
  %3 = Input() {name = "cos"} : f32[5, $H]
  %4 = Input() {name = "sin"} : f32[5, $H]
  %5 = Rope(%2, %3, %4) {head_dim = $D, n_rot = $D, packed = true, style = "neox"} : f32[5, $N]
  return %5
})";
  EXPECT_THAT(RegionsOf(absl::StrReplaceAll(kGraph, {{"$N", "192"}, {"$H", "32"}, {"$D", "64"}})),
              ElementsAre("matmul: MatMul Rope -> 1"));
  EXPECT_THAT(RegionsOf(absl::StrReplaceAll(kGraph, {{"$N", "192"}, {"$H", "24"}, {"$D", "48"}})),
              ElementsAre("matmul: MatMul -> 1", "map: Rope -> 1"));
}

TEST(FuseSoundness, NoPathLeavesARegionAndComesBack) {
  const ir::Graph graph = Prepared(Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 32]
  %1 = Param() {name = "w"} : f32[32, 32]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[5, 32]
  %3 = Softmax(%2) {axis = -1} : f32[5, 32]
  return %3
})"));
  EXPECT_THAT(Regions(Fused(graph)), ElementsAre("matmul: MatMul -> 1", "lines: Reduce Sub Exp Reduce Recip Mul -> 1"));
}

// The way back begins behind the last node of the union, and leads through a region with nodes on either side of it:
// from Tanh by Pad to the region of Sub and Abs, and from there to Add.
TEST(FuseSoundness, NoPathComesBackThroughALongRegion) {
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[40, 40]
  %1 = Tanh(%0) : f32[40, 40]
  %2 = Abs(%0) : f32[40, 40]
  %3 = Add(%1, %2) : f32[40, 40]
  %4 = Pad(%1) {high = [0, 1], low = [0, 0], value = 3.0} : f32[40, 41]
  %5 = Slice(%4) {axis = 1, start = 1, step = 1, stop = 41} : f32[40, 40]
  %6 = Sub(%5, %2) : f32[40, 40]
  return %3, %6
})"),
              ElementsAre("map: Tanh -> 1", "map: Pad -> 1", "map: Abs Add Slice Sub -> 2"));
}

TEST(FuseSoundness, ABiasIsNoResidual) {
  // M == N: only the rank tells a bias [N] from a column [M, 1]. Both must stay what their index says.
  const ir::Graph fused = Fused(Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[8, 32]
  %1 = Param() {name = "w"} : f32[8, 32]
  %2 = Param() {name = "bias"} : f32[8]
  %3 = Input() {name = "column"} : f32[8, 1]
  %4 = MatMul(%0, %1) {transpose_b = true} : f32[8, 8]
  %5 = Add(%4, %2) : f32[8, 8]
  %6 = Add(%5, %3) : f32[8, 8]
  return %6
})"));
  ASSERT_THAT(Regions(fused), ElementsAre("matmul: MatMul Add Add -> 1"));
  const ir::Graph& body = fused.nodes().back().body();
  EXPECT_EQ(body.node(3).results[0].ToString(), "f32[8]");
  EXPECT_EQ(body.node(5).results[0].ToString(), "f32[8, 1]");
}

TEST(FuseSoundness, ABiasOfHigherRankIsNoEpilogue) {
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[4, 32]
  %1 = Param() {name = "w"} : f32[8, 32]
  %2 = Input() {name = "bias"} : f32[3, 1, 8]
  %3 = MatMul(%0, %1) {transpose_b = true} : f32[4, 8]
  %4 = Add(%3, %2) : f32[3, 4, 8]
  return %4
})"),
              ElementsAre("matmul: MatMul -> 1", "map: Add -> 1"));
}

TEST(FuseSoundness, AScalarOfARowDoesNotLineUpWithColumns) {
  // The sums of 5 rows are added along 5 columns: the reduction must be finished first.
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 5]
  %1 = Reduce(%0) {axes = [-1], keep_dim = false, op = "sum"} : f32[5]
  %2 = Add(%0, %1) : f32[5, 5]
  return %2
})"),
              ElementsAre("lines: Reduce -> 1", "map: Add -> 1"));
}

TEST(FuseSoundness, OnlyAnUnsharedDonatedInputIsWrittenInPlace) {
  constexpr const char* kHead = R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 32]
  %1 = Param() {name = "w"} : f32[8, 32]
  %2 = Input() {name = "cache"} : f32[16, 8]
  %3 = MatMul(%0, %1) {transpose_b = true} : f32[2, 8]
  %4 = Update(%2, %3) {axis = 0, start = <3>} : f32[16, 8]
)";
  EXPECT_THAT(RegionsOf(absl::StrCat(kHead, "  return %4\n  donate \"cache\" -> 0\n}")),
              ElementsAre("matmul: MatMul Update -> 1"));
  // Not donated: the old cache must survive.
  EXPECT_THAT(RegionsOf(absl::StrCat(kHead, "  return %4\n}")),
              ElementsAre("matmul: MatMul -> 1", "update: Update -> 1"));
  // Read after the update: it must read the old cache, so the update writes a copy.
  EXPECT_THAT(
      RegionsOf(absl::StrCat(kHead, "  %5 = Exp(%2) : f32[16, 8]\n  return %4, %5\n  donate \"cache\" -> 0\n}")),
      ElementsAre("matmul: MatMul -> 1", "map: Cast -> 1", "update: Update -> 1", "map: Exp -> 1"));
  // Donated to another output.
  EXPECT_THAT(
      RegionsOf(absl::StrCat(kHead, "  %5 = Neg(%4) : f32[16, 8]\n  return %4, %5\n  donate \"cache\" -> 1\n}")),
      ElementsAre("matmul: MatMul -> 1", "map: Cast -> 1", "update: Update -> 1", "map: Neg -> 1"));
}

// States of many sequences: a few rows are read, and what they become is written to others.
TEST(FuseSoundness, AnInputThatIsOnlyGatheredFromIsWrittenLast) {
  constexpr const char* kHead = R"(graph g sym B in 1..8 {
  %0 = Input() {name = "states"} : f32[9, 5]
  %1 = Input() {name = "from"} : i32[B]
  %2 = Input() {name = "to"} : i32[B]
  %3 = Input() {name = "x"} : f32[B, 5]
)";
  constexpr const char* kEnd = "  donate \"states\" -> 1\n}";
  // No kernel reads rows of the memory that it writes to.
  EXPECT_THAT(RegionsOf(absl::StrCat(kHead, R"(
  %4 = Gather(%0, %1) {axis = 0} : f32[B, 5]
  %5 = Add(%4, %3) : f32[B, 5]
  %6 = Update(%0, %5, %2) {axis = 0} : f32[9, 5]
  %7 = Neg(%3) : f32[B, 5]
  return %7, %6
)",
                                     kEnd)),
              ElementsAre("map: Gather -> 1", "update: Add Update -> 1", "map: Neg -> 1"));
  EXPECT_THAT(RegionsOf(absl::StrCat(kHead, R"(
  %4 = Neg(%3) : f32[B, 5]
  %5 = Update(%0, %4, %2) {axis = 0} : f32[9, 5]
  %6 = Gather(%0, %1) {axis = 0} : f32[B, 5]
  %7 = Exp(%6) : f32[B, 5]
  return %7, %5
)",
                                     kEnd)),
              ElementsAre("map: Gather Exp -> 1", "update: Neg Update -> 1"));
  // Read otherwise, or where what was written is read: a copy.
  EXPECT_THAT(RegionsOf(absl::StrCat(kHead, R"(
  %4 = Update(%0, %3, %2) {axis = 0} : f32[9, 5]
  %5 = Exp(%0) : f32[9, 5]
  return %5, %4
)",
                                     kEnd)),
              ElementsAre("map: Cast -> 1", "update: Update -> 1", "map: Exp -> 1"));
  EXPECT_THAT(RegionsOf(absl::StrCat(kHead, R"(
  %4 = Gather(%0, %1) {axis = 0} : f32[B, 5]
  %5 = Update(%0, %4, %2) {axis = 0} : f32[9, 5]
  %6 = Exp(%5) : f32[9, 5]
  return %6, %5
)",
                                     kEnd)),
              ElementsAre("map: Cast -> 1", "update: Gather Update -> 1", "map: Exp -> 1"));
}

TEST(FuseSoundness, WeightWorkStaysOutOfEveryRun) {
  FusionReport report;
  const ir::Graph fused = Fused(Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[64, 16]
  %1 = Param() {name = "w"} : f32[16, 64]
  %2 = Transpose(%1) {perm = [1, 0]} : f32[64, 16]
  %3 = Add(%0, %2) : f32[64, 16]
  return %3
})"),
                                &report);
  EXPECT_THAT(Regions(fused), ElementsAre("map: Transpose -> 1", "map: Add -> 1"));
  EXPECT_THAT(report.ToString(), HasSubstr("Transpose %2 is computed once per binding, Add %3 in every run"));
}

TEST(FuseSoundness, UnalignedViewsAreNoViews) {
  // Row 1 of 5 floats starts at byte 20, where no kernel parameter may start.
  EXPECT_THAT(RegionsOf(R"(graph g {
  %0 = Input() {name = "x"} : f32[4, 5]
  %1 = Narrow(%0) {axis = 0, length = <2>, start = <1>} : f32[2, 5]
  %2 = Exp(%1) : f32[2, 5]
  %3 = Input() {name = "y"} : f32[4, 16]
  %4 = Narrow(%3) {axis = 0, length = <2>, start = <1>} : f32[2, 16]
  %5 = Exp(%4) : f32[2, 16]
  return %2, %5
})"),
              ElementsAre("map: Narrow Exp -> 1", "Narrow", "map: Exp -> 1"));
}

TEST(FuseSoundness, CompositesAreAnError) {
  const StatusOr<ir::Graph> fused = FuseRegions(Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 13]
  %1 = Softmax(%0) {axis = 0} : f32[5, 13]
  return %1
})"),
                                                {.families = codegen::Families()});
  EXPECT_EQ(fused.status().message(), "fusion takes plain ops, and not Softmax");
}

TEST(FusionReport, SaysWhatWasFusedAndWhatWasNot) {
  FusionReport report;
  Fused(Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[4, 32]
  %1 = Param() {name = "w"} : f32[8, 32]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[4, 8]  @"ffn/up"
  %3 = Relu(%2) : f32[4, 8]
  %4 = Transpose(%3) {perm = [1, 0]} : f32[8, 4]
  return %4
})"),
        &report);
  EXPECT_EQ(report.ToString(),
            "region %2 matmul ffn/up: MatMul Relu, 2 inputs, 1 output\n"
            "region %3 map: Transpose, 1 input, 1 output\n"
            "missed: Transpose %4 not fused with Relu %3: Transpose %4 moves elements of the product\n");
}

}  // namespace
}  // namespace quern::opt
