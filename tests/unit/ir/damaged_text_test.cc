// Text of graphs that nobody wrote: an error, or a graph that prints and parses as any other. Never a crash, nor time
// or memory out of proportion.
#include <gtest/gtest.h>

#include <random>

#include "ir/graph.h"
#include "support/damage_text.h"
#include "support/environment.h"

namespace quern::ir {
namespace {

// Every form of the text occurs: symbols, all kinds of attributes, data, several results, a body, origins, donations,
// schemes.
constexpr const char* kSources[] = {
    R"(graph g sym PAST_SEQ in 0..511, SEQ in 1..256 {
  %0 = Input() {name = "x"} : f32[SEQ, 256]
  %1 = Param() {name = "up"} : q4_K[512, 256]
  %2 = Quantize(%0) {format = q8_K} : q8_K[SEQ, 256]
  %3 = MatMul(%2, %1) {transpose_b = true} : f32[SEQ, 512]  @"ffn/up" by "lower"
  %4 = Input() {name = "cache"} : f32[512, 512]
  %5 = Constant() hex 0000803f : f32[]
  %6 = Mul(%3, %5) : f32[SEQ, 512]
  %7 = Update(%4, %6) {axis = 0, start = <PAST_SEQ>} : f32[512, 512]
  return %3, %7
  donate "cache" -> 1
  quantise "%6" {dtype = u8, high = 2.5, low = -1.0, symmetric = false}
}
)",
    R"(graph g sym S in 1..8 {
  %0 = Input() {name = "a"} : f32[3, 2*S + 1]
  %1 = Reduce(%0) {axes = [-1], keep_dim = true, op = "mean"} : f32[3, 1]
  %2 = Expand(%1) {shape = <3, S>} : f32[3, S]
  %3 = Transpose(%2) {perm = [1, 0]} : f32[S, 3]
  %4 = Reshape(%3) {shape = <3*S>} : f32[3*S]
  %5 = Pad(%4) {high = [2], low = [1], value = 0.5} : f32[3*S + 3]
  %6 = Narrow(%5) {axis = 0, length = <S>, start = <S + 1>} : f32[S]
  %7 = Input() {name = "g"} : f32[1]
  %8:2 = FusedResidualRmsNorm(%1, %1, %7) {eps = 1e-05} : f32[3, 1], f32[3, 1]
  return %6, %8.0, %8.1
}
)",
    R"(graph g {
  %0 = Input() {name = "a"} : f32[7, 5]
  %1 = Region(%0) {family = "map"} : f32[7, 5] body graph body {
    %0 = Input() {name = "i0"} : f32[7, 5]
    %1 = Silu(%0) : f32[7, 5]
    return %1
  }
  %2 = Concat(%0, %1) {axis = 1} : f32[7, 10]
  %3 = Slice(%2) {axis = 1, start = 1, step = 3, stop = 10} : f32[7, 3]
  return %3
}
)"};

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
                                        "%99999999999",
                                        "*",
                                        "+",
                                        "-",
                                        "..",
                                        "\"",
                                        "\\",
                                        "\n",
                                        "#",
                                        "@\"",
                                        "by",
                                        "0",
                                        "-1",
                                        "1e400",
                                        "nan",
                                        "0.5",
                                        "2147483648",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "99999999999999999999",
                                        "S",
                                        "SEQ",
                                        "4611686018427387904*S*SEQ",
                                        "f32",
                                        "q4_K",
                                        "bool",
                                        "f16[2, 3]",
                                        "graph g {",
                                        "return %0",
                                        "donate \"x\" -> 0",
                                        "true",
                                        "hex 00",
                                        "Region",
                                        "Reshape",
                                        "\xff",
                                        "sym N in 0..0"};

TEST(DamagedText, NeverCrashes) {
  constexpr uint32_t kSeed = 3571;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  const int cases = 20000 * static_cast<int>(quern::testing::FromEnvironment("QUERN_LONG_TESTS", 1));
  std::mt19937 random(kSeed);
  int read = 0;
  for (int i = 0; i < cases; ++i) {
    const std::string text = quern::testing::DamagedText(random, kSources, kPieces);
    const StatusOr<Graph> graph = Parse(text);
    if (!graph.ok()) {
      EXPECT_FALSE(graph.status().message().empty()) << text;
      continue;
    }
    if (!Verify(*graph).ok()) continue;
    ++read;
    const std::string printed = Print(*graph);
    const StatusOr<Graph> again = Parse(printed);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed << "\nfrom\n" << text;
    EXPECT_TRUE(SameGraph(*graph, *again)) << printed;
    EXPECT_EQ(Print(*again), printed);
  }
  EXPECT_GT(read, cases / 100);  // the damage is small enough to get past the parser now and then
  EXPECT_LT(read, cases);
}

std::string ErrorOf(std::string_view text) {
  const StatusOr<Graph> graph = Parse(text);
  EXPECT_NE(graph.status().code(), absl::StatusCode::kInternal) << "a text is no bug of ours";
  return graph.ok() ? "no error" : std::string(graph.status().message());
}

TEST(DamagedText, SaysWhatIsWrong) {
  EXPECT_EQ(
      ErrorOf(
          "graph g {\n  %0 = Region() {family = \"map\"} : f32[] body graph b {\n    return\n  }\n  return %0\n}\n"),
      "line 4: Region %0 has no results");
  EXPECT_EQ(ErrorOf("graph g {\n  %0:3 = Input() {name = \"x\"} : f32[2]\n  return %0\n}\n"),
            "2:39: expected as many types as results before here");
  EXPECT_EQ(
      ErrorOf("graph g {\n  %0 = Input() {name = \"x\"} : f32[2]\n  return %0\n  donate \"x\" -> 4294967296\n}\n"),
      "4:27: expected an output before here");
  EXPECT_EQ(ErrorOf("graph g {\n  %0 = Input() {name = \"x\"} : f32[4611686018427387904, 4]\n  return %0\n}\n"),
            "line 4: %0 (Input): f32[4611686018427387904, 4] has more elements than 64 bits can count");
  EXPECT_EQ(ErrorOf("graph g {\n  %0 = Input() {name = \"x\"} : f32[3, -1]\n  return %0\n}\n"),
            "line 4: %0 (Input): f32[3, -1] has a negative size");
}

// Deep and long text ends in a sentence, not in the stack's end.
TEST(DamagedText, DepthAndLengthAreBounded) {
  std::string nested = "graph g {\n";
  for (int i = 0; i < 20000; ++i) nested += "%0 = Region() {family = \"map\"} : f32[] body graph b {\n";
  EXPECT_FALSE(Parse(nested).ok());
  EXPECT_FALSE(
      Parse("graph g {\n  %0 = Input() {name = \"x\"} : f32[" + std::string(1 << 20, '(') + "]\n  return %0\n}\n")
          .ok());
  EXPECT_FALSE(Parse("graph g {\n  %0 = Input() {name = \"" + std::string(1 << 20, '\\') + "\n").ok());
}

}  // namespace
}  // namespace quern::ir
