// Module text comes back: every form of it, what is wrong with a text, and texts that nobody wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "hir/module.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/value_names.h"
#include "support/damage_text.h"
#include "support/environment.h"

namespace quern::hir {
namespace {

// Blocks, ops, labels of sub-blocks, absent operands, several results, data, bodies and donations.
constexpr const char* kSources[] = {
    R"(module decoder sym SEQ in 1..256 fusion direct {
  %0 = Input() {name = "x"} : f32[SEQ, 64]  @"x"
  %1 = Param() {name = "g"} : f32[64]  @"layers.0/g"
  %2:2 = ResidualRmsNorm(%0, %0, %1) {eps = 1e-05} : f32[SEQ, 64], f32[SEQ, 64]  @"layers.0/residual_rms_norm"
  %3 = Mir.Silu(%2.1) : f32[SEQ, 64]  @"layers.0/%3"
  %4 = Param() {name = "w"} : q8_0[32, 64]  @"w"
  %5 = Linear(%3, %4) {act = "Silu", bias = false, weight_layout = "nk"} : f32[SEQ, 32]  @"up"
  %6 = Constant() hex 0000803f : f32[]  @"constant"
  %7 = Mir.Mul(%5, %6) : f32[SEQ, 32]  @"%7"
  %8 = Input() {name = "state"} : f32[256, 32]  @"state"
  %9 = Mir.Update(%8, %7) {axis = 0, start = <0>} : f32[256, 32]  @"%9"
  return %7 as "y", %2.0, %9
  donate "state" -> 2
  quantise "layers.0/%3" {dtype = u8, high = 3.0, low = -0.25, symmetric = false}
}
)",
    R"(module "a name of words" fusion fusable {
  %0 = Input() {name = "x"} : f32[2, 3, 8]  @"x"
  %1 = Attention(%0, %0, %0) {head_dim = 4, heads = 2, kv_heads = 2,)"
    R"( layout = "packed", mask = "causal", scale = 0.0, softcap = 0.0, window = 0})"
    R"( : f32[2, 3, 8]  @"attention"
  %2 = Input() {name = "p"} : bool[]  @"p"
  %3 = Mir.If(%2, %1) : f32[2, 3, 8]  @"%3" then graph then {
    %0 = Input() {name = "x"} : f32[2, 3, 8]
    return %0
  } else graph else {
    %0 = Input() {name = "x"} : f32[2, 3, 8]
    %1 = Neg(%0) : f32[2, 3, 8]
    return %1
  }
  %4 = Mir.Region(%3) {family = "map"} : f32[2, 3, 8]  @"%4" body graph body {
    %0 = Input() {name = "i0"} : f32[2, 3, 8]
    %1 = Silu(%0) : f32[2, 3, 8]
    return %1
  }
  return %4
}
)"};

TEST(ModuleText, ComesBack) {
  for (const char* source : kSources) {
    const StatusOr<Module> module = Parse(source);
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ(Print(*module), source);
    const StatusOr<ir::Graph> graph = Lower(*module);
    EXPECT_TRUE(graph.ok()) << graph.status();
  }
  const StatusOr<Module> module = Parse(kSources[1]);
  EXPECT_EQ(module->name, "a name of words");
  EXPECT_EQ(module->policy, FusionPolicy::kFusable);
}

TEST(ModuleText, DefaultsAreFilledIn) {
  const StatusOr<Module> module = Parse(
      "# comments, no policy, no labels\nmodule m sym S in 2.. {\n  %0 = Input() {name = \"x\"} : f32[S, 8]\n"
      "  %1 = Param() {name = \"g\"} : f32[8]\n  %2 = RmsNorm(%0, %1) : f32[S, 8]  # a norm\n  return %2\n}\n");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(Print(*module), R"(module m sym S in 2.. fusion direct {
  %0 = Input() {name = "x"} : f32[S, 8]  @"x"
  %1 = Param() {name = "g"} : f32[8]  @"g"
  %2 = RmsNorm(%0, %1) {eps = 1e-05} : f32[S, 8]  @"rms_norm"
  return %2
}
)");
}

// What multiplies in a fused op would have no names: with a map blocks are plain ops, whatever the policy.
TEST(ModuleText, MapsAreOfPlainOps) {
  const std::string nodes = R"(module m fusion direct {
  %0 = Input() {name = "x"} : f32[2, 8]
  %1 = Param() {name = "w"} : f32[8, 4]
  %2 = Param() {name = "b"} : f32[4]
  %3 = Linear(%0, %1, %2) {act = "Relu", bias = true} : f32[2, 4]  @"up"
  return %3
)";
  const auto ops = [](const std::string& text) {
    const StatusOr<Module> module = Parse(text);
    EXPECT_TRUE(module.ok()) << module.status();
    const StatusOr<ir::Graph> graph = Lower(*module);
    EXPECT_TRUE(graph.ok()) << graph.status();
    std::string made;
    for (const ir::Node& node : graph->nodes()) made += std::string(node.op->name) + " ";
    return made + std::to_string(graph->quantisation.size());
  };
  EXPECT_EQ(ops(nodes + "}\n"), "Input Param Param FusedMatMulBiasAct 0");
  EXPECT_EQ(ops(nodes + "  quantise \"up#3\" {dtype = u8, high = 1.0, low = 0.0}\n}\n"),
            "Input Param Param MatMul Add Relu 1");
}

// A Constant without a label gets one, by which it is called then.
TEST(ModuleText, MapsOfGraphsStayWithTheirValues) {
  const StatusOr<ir::Graph> graph = ir::Parse(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 3]
  %1 = Constant() hex 0000803f000000c00000003f : f32[3, 1]
  %2 = Exp(%0) : f32[2, 3]
  %3 = MatMul(%2, %1) : f32[2, 1]
  return %3
  quantise "%1" {dtype = i8, symmetric = true}
  quantise "%2" {dtype = u8, high = 3.0, low = 0.0}
})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StatusOr<Module> module = WrapGraph(*graph);
  ASSERT_TRUE(module.ok()) << module.status();
  for (const StatusOr<Module>& one : {module, Parse(Print(*module))}) {
    ASSERT_TRUE(one.ok()) << one.status();
    const StatusOr<ir::Graph> lowered = Lower(*one);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_TRUE(ir::SchemesOf(*lowered) == ir::SchemesOf(*graph)) << Print(*one);
    EXPECT_TRUE(ir::SameGraph(*lowered, *graph));
  }
}

std::string ErrorOf(const std::string& nodes) {
  const StatusOr<Module> module = Parse("module m {\n  %0 = Input() {name = \"x\"} : f32[2, 8]\n" + nodes + "}\n");
  EXPECT_NE(module.status().code(), absl::StatusCode::kInternal) << "a text is no bug of ours";
  return module.ok() ? "no error" : std::string(module.status().message());
}

TEST(ModuleText, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf("  %1 = Linea(%0) : f32[2]\n  return\n"),
            "3:13: there is no block or op Linea; did you mean Linear?");
  EXPECT_EQ(ErrorOf("  %1 = Silu(%0) : f32[2]\n  return\n"),
            "3:12: there is no block or op Silu; did you mean Mir.Silu?");
  EXPECT_EQ(ErrorOf("  %1 = Mir.Sillu(%0) : f32[2]\n  return\n"),
            "3:17: there is no block or op Sillu; did you mean Silu?");
  EXPECT_EQ(ErrorOf("  %1 = Mir(%0) : f32[2]\n  return\n"), "3:11: expected Mir.OP, and of Mir alone, before here");
  EXPECT_EQ(ErrorOf("  %1 = Linear.Add(%0) : f32[2]\n  return\n"),
            "3:18: expected Mir.OP, and of Mir alone, before here");
  EXPECT_EQ(ErrorOf("  %1 = Mir.Silu(%0) : f32[2, 9]\n  return %1\n"), "line 3: expected the inferred type f32[2, 8]");
  EXPECT_EQ(ErrorOf("  %1 = Mir.Silu(%3) : f32[2, 8]\n  return %1\n"), "3:19: expected an earlier value");
  EXPECT_EQ(ErrorOf("  %1 = Mir.Input() {name = \"y\"} : f32[2, 8]\n  return %1\n"), "line 3: Mir: a leaf is a block");
  EXPECT_EQ(ErrorOf("  %1 = Input() {name = \"x\"} : f32[2, 8]\n  return %1\n"), "line 3: Input: the name x is taken");
  EXPECT_EQ(ErrorOf("  %1 = Input() : f32[2, 8]\n  return %1\n"), "line 3: Input: expected a name");
  EXPECT_EQ(ErrorOf("  %1 = Constant() : f32[]\n  return %1\n"),
            "line 3: Constant: a Constant has data, and nothing else has");
  EXPECT_EQ(ErrorOf("  %1 = Mir.Region(%0) : f32[2, 8] body graph g {\n    return\n  }\n  return %1\n"),
            "line 5: Mir: expected a family");
  EXPECT_EQ(ErrorOf("  %1 = RmsNorm(%0, -) : f32[2, 8]\n  return %1\n"),
            "line 3: RmsNorm: gamma refers to no value (absent) (in rms_norm)");
  EXPECT_EQ(ErrorOf("  return %0\n  donate \"x\" -> 1\n"), "4:18: expected an output before here");
  EXPECT_EQ(ErrorOf("  return %0\n  quantise \"xx\" {dtype = u8, high = 1.0, low = 0.0}\n"),
            "line 5: there is no value xx; there is: x; did you mean x? (in m)");
  EXPECT_EQ(std::string(Parse("module m fusion some {\n  return\n}\n").status().message()),
            "1:16: expected direct or fusable");
}

constexpr std::string_view kPieces[] = {"(",
                                        ")",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        "<",
                                        ">",
                                        ",",
                                        ":",
                                        "=",
                                        "%",
                                        "%0",
                                        "-",
                                        "..",
                                        "\"",
                                        "\n",
                                        "#",
                                        "@\"",
                                        "0",
                                        "-1",
                                        "1e400",
                                        "nan",
                                        "0.5",
                                        "2147483648",
                                        "9223372036854775807",
                                        "SEQ",
                                        "4611686018427387904*S*SEQ",
                                        "f32",
                                        "q4_K",
                                        "bool",
                                        "f16[2, 3]",
                                        "Mir.",
                                        "Mir.Region",
                                        "Linear",
                                        "LlamaDecoderBlock",
                                        "Constant",
                                        "Input",
                                        "return %0",
                                        "donate \"x\" -> 0",
                                        "quantise \"x\" {dtype = u8, high = 2.0, low = 1.0}",
                                        "true",
                                        "hex 00",
                                        "-9223372036854775808",
                                        "\xff",
                                        "heads = 0",
                                        "window = -1",
                                        "sym N in 0..0"};

TEST(ModuleText, DamagedTextNeverCrashes) {
  constexpr uint32_t kSeed = 90217;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  const int cases = 10000 * static_cast<int>(quern::testing::FromEnvironment("QUERN_LONG_TESTS", 1));
  std::mt19937 random(kSeed);
  int read = 0;
  for (int i = 0; i < cases; ++i) {
    const std::string text = quern::testing::DamagedText(random, kSources, kPieces);
    const StatusOr<Module> module = Parse(text);
    if (!module.ok()) {
      EXPECT_FALSE(module.status().message().empty()) << text;
      EXPECT_NE(module.status().code(), absl::StatusCode::kInternal) << text;
      continue;
    }
    ++read;
    const std::string printed = Print(*module);
    const StatusOr<Module> again = Parse(printed);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed << "\nfrom\n" << text;
    EXPECT_EQ(Print(*again), printed);
    const StatusOr<ir::Graph> graph = Lower(*module);
    EXPECT_NE(graph.status().code(), absl::StatusCode::kInternal) << graph.status() << "\n" << text;
  }
  EXPECT_GT(read, cases / 100);
  EXPECT_LT(read, cases);
}

}  // namespace
}  // namespace quern::hir
