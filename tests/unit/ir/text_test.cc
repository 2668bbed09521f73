// Graph text: what is printed parses back to the same graph; errors say where and what.
#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ir/op.h"

namespace quern::ir {
namespace {

constexpr const char* kFeedForward = R"(graph ffn sym PAST_SEQ in 0..511, SEQ in 1..256 {
  %0 = Input() {name = "x"} : f32[SEQ, 256]
  %1 = Param() {name = "up"} : q4_K[512, 256]
  %2 = Param() {name = "gate"} : q4_K[512, 256]
  %3 = Quantize(%0) {format = q8_K} : q8_K[SEQ, 256]
  %4 = MatMul(%3, %1) {transpose_b = true} : f32[SEQ, 512]  @"ffn/up" by "lower"
  %5 = MatMul(%3, %2) {transpose_b = true} : f32[SEQ, 512]
  %6 = Silu(%5) : f32[SEQ, 512]
  %7 = Mul(%4, %6) : f32[SEQ, 512]
  %8 = Input() {name = "cache"} : f32[512, 512]
  %9 = Constant() hex 0000803f : f32[]
  %10 = Mul(%7, %9) : f32[SEQ, 512]
  %11 = Update(%8, %10) {axis = 0, start = <PAST_SEQ>} : f32[512, 512]
  require 512 >= PAST_SEQ + SEQ
  return %7 as "the sum", %11
  donate "cache" -> 1
}
)";

TEST(GraphText, PrintsWhatItParsed) {
  const StatusOr<Graph> graph = Parse(kFeedForward);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Print(*graph), kFeedForward);
  const StatusOr<Graph> again = Parse(Print(*graph));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(SameGraph(*graph, *again));
}

// Where it has its default it is not there, so that a graph has one text.
TEST(GraphText, RareAttributes) {
  const auto printed = [](const std::string& attributes) {
    return Print(
        *Parse("graph g {\n  %0 = Input() {name = \"x\"} : f32[2, 3]\n  %1 = Param() {name = \"w\"} : f16[3, 5]\n" +
               ("  %2 = MatMul(%0, %1) {" + attributes + "transpose_b = false} : f32[2, 5]\n  return %2\n}\n")));
  };
  EXPECT_EQ(printed("as_bf16 = false, "), printed(""));
  EXPECT_EQ(printed("").find("as_bf16"), std::string::npos);
  EXPECT_NE(printed("as_bf16 = true, ").find("{as_bf16 = true, transpose_b = false}"), std::string::npos);
}

TEST(GraphText, SaysWhatIsWrong) {
  EXPECT_EQ(Parse("graph g {\n  %0 = Nonsense() : f32[]\n  return %0\n}").status().message(),
            "2:16: there is no block or op Nonsense");
  EXPECT_EQ(Parse("graph g {\n  %0 = Input() {name = \"x\"} : f32[2]\n  %1 = Exp(%0) : f32[3]\n  return %1\n}")
                .status()
                .message(),
            "line 3: expected the inferred type f32[2]");
  EXPECT_EQ(Parse("graph g {\n  %0 = Input() {name = \"x\"} : i32[2]\n  %1 = Exp(%0) : i32[2]\n  return %1\n}")
                .status()
                .message(),
            "line 3: Exp: a is i32, a float expected");
  EXPECT_EQ(Parse("graph g {\n  %0 = Input() {name = \"x\"} : f32[N]\n  return %0\n}").status().message(),
            "line 4: %0 (Input): symbol N is not declared");
  EXPECT_EQ(Parse("graph g sym S in 5..3 {\n  return\n}").status().message(),
            "1:22: expected a range of sizes before here");
  EXPECT_EQ(
      Parse("graph g {\n  %0 = Input() {name = \"x\"} : f32[2]\n  %1 = Input() {name = \"y\"} : f32[2]\n  return %0\n"
            "  donate \"x\" -> 0\n  donate \"y\" -> 0\n}")
          .status()
          .message(),
      "line 7: bad donation to output 0");
  EXPECT_EQ(Parse("graph g {\n  %0 = Input() {name = \"x\"} : f32[2]\n  return %0 as \"y\", %0 as \"y\"\n}")
                .status()
                .message(),
            "line 4: Output: the name y is taken");
  EXPECT_EQ(Parse("graph g {\n  %0 = Input() {name = \"x\"} : f32[2]\n  return %0 as y\n}").status().message(),
            "3:15: expected \"\"\"");
}

TEST(OpTable, IsSortedAndComplete) {
  std::string_view previous;
  for (const OpDef* op : Ops()) {
    EXPECT_LT(previous, op->name);
    previous = op->name;
    EXPECT_EQ(FindOp(op->name), op);
    EXPECT_STRNE(op->doc, "");
    switch (op->kind) {
      case OpKind::kElementwise:
      case OpKind::kIndex:
        EXPECT_NE(op->map, nullptr) << op->name;
        EXPECT_NE(op->reference, nullptr) << op->name;
        break;
      case OpKind::kComposite: EXPECT_TRUE(op->expand != nullptr || op->pairs != nullptr) << op->name; break;
      case OpKind::kLeaf:
      case OpKind::kRegion: break;
      case OpKind::kControl: EXPECT_NE(op->reference, nullptr) << op->name; break;
      case OpKind::kRoot:
      case OpKind::kPack:
      case OpKind::kWrite:
        EXPECT_NE(op->reference, nullptr) << op->name;
        EXPECT_NE(op->family, nullptr) << op->name;
        break;
    }
  }
}

}  // namespace
}  // namespace quern::ir
