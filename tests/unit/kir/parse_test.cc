// Errors of the parser: where and what; and that no input makes it crash.
#include <fstream>
#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kir/canonical.h"
#include "kir/parse.h"

namespace quern::kir {
namespace {

std::string ReadFile(const std::string& name) {
  std::ifstream in(std::string(QUERN_SOURCE_DIR) + "/tests/kir/" + name + ".kir");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string ErrorOf(const std::string& text) {
  const StatusOr<Kernel> kernel = ParseKernel(text);
  return kernel.ok() ? "no error" : std::string(kernel.status().message());
}

// The error of a kernel whose body is this one line; it stands on line 5.
std::string BodyError(const std::string& body) {
  return ErrorOf("kernel k (\nx : f32[M, 8] inout\nw : q4_K[M, 256] @blocks in\n) sym M { grid r in 0..M {\n" + body +
                 "\n} }");
}

std::string ExprError(const std::string& text) {
  const Scope scope{.scalars = {{"x", DType::kF32}, {"i", DType::kI64}},
                    .buffers = {{"v", {DType::kF32, {8}, Layout::kRow}}}};
  const StatusOr<ExprRef> expr = ParseExpr(text, scope);
  return expr.ok() ? "no error" : std::string(expr.status().message());
}

TEST(ParseErrors, Kernels) {
  EXPECT_EQ(ErrorOf(""), "1:1: expected \"kernel\", got the end of the text");
  EXPECT_EQ(ErrorOf("kernel k"), "1:9: expected \"(\", got the end of the text");
  EXPECT_EQ(ErrorOf("kernel k (x : f31[8])"), "1:15: expected a dtype, got \"f31\"");
  EXPECT_EQ(ErrorOf("kernel k (x : q4_K[8] in)"), "1:15: q4_K cannot have layout @row");
  EXPECT_EQ(ErrorOf("kernel k (x : f32[8] @planar in)"), "1:15: f32 cannot have layout @planar");
  EXPECT_EQ(ErrorOf("kernel k (x : f32[N] in) {"), "1:19: unknown symbol \"N\"");
  EXPECT_EQ(ErrorOf("kernel k (x : f32[8] in, x : f32[8] in)"), "1:26: \"x\" is already declared");
  EXPECT_EQ(ErrorOf("kernel k (x : f32[8] align 24)"), "1:28: an alignment is a power of two");
  EXPECT_EQ(ErrorOf("kernel k (x : f32[8] in of)"), "1:25: expected in, out, inout, align or inplace, got \"of\"");
  EXPECT_EQ(ErrorOf("kernel k (for : f32)"), "1:11: \"for\" is a reserved word");
  EXPECT_EQ(ErrorOf("kernel k (x : f32[-3])"), "1:19: negative extent");
  EXPECT_EQ(ErrorOf("kernel k () sym M in 4..3 {"), "1:25: expected an upper end (at least 4), got \"3\"");
  EXPECT_EQ(ErrorOf("kernel k () { grid a in 0..1, b in 0..1, c in 0..1, d in 0..1 {"),
            "1:53: a grid has at most three dimensions");
  EXPECT_EQ(ErrorOf("kernel k () { grid r in 0..4 {} } kernel"), "1:35: expected the end of the text, got \"kernel\"");
  EXPECT_EQ(ErrorOf("kernel k $"), "1:10: unexpected character (byte 36)");
}

TEST(ParseErrors, Statements) {
  EXPECT_EQ(BodyError("x[r, 0] = 1"), "no error");
  EXPECT_EQ(BodyError("x[r] = 1"), "5:4: expected \",\", got \"]\"");
  EXPECT_EQ(BodyError("x[r, 0, 1] = 1"), "5:7: expected 2 indices, got \",\"");
  EXPECT_EQ(BodyError("x[r, 0] = r"), "5:11: expected f32, got i64");
  EXPECT_EQ(BodyError("x[r, 0.5] = 1"), "5:6: expected i64, got a real literal");
  EXPECT_EQ(BodyError("w[r, 0] = 1"), "5:1: a block format is written by pack");
  EXPECT_EQ(BodyError("x[r, 0] = w[r, 0]"), "5:11: elements of a block format are read by decode(...)");
  EXPECT_EQ(BodyError("y[r, 0] = 1"), "5:1: expected a buffer to store to");
  EXPECT_EQ(BodyError("let r = 1"), "5:5: \"r\" is already declared");
  EXPECT_EQ(BodyError("for i in 0..4 {} x[i, 0] = 1"), "5:20: unknown name \"i\"");
  EXPECT_EQ(BodyError("let a = 1 a := 2"), "5:11: expected a var to assign to");
  EXPECT_EQ(BodyError("for i in 0..4 by 0 {}"), "5:18: expected a step (at least 1), got \"0\"");
  EXPECT_EQ(BodyError("vec i in 0..4 tail none {}"), "5:20: expected mask, peel or pad, got \"none\"");
  EXPECT_EQ(BodyError("if r {}"), "5:4: expected bool, got i64");
  EXPECT_EQ(BodyError("tile t : f32[M] = 0"), "5:10: a tile has constant extents above 0");
  EXPECT_EQ(BodyError("tile t : f32[4] = 0 let a = t"), "6:1: expected an index of the tile, got \"}\"");
  EXPECT_EQ(BodyError("tile t : f32[4] = 0 map (i, j) in t {}"), "5:35: the rank of the tile is not that of the map");
  EXPECT_EQ(BodyError("map (i, j) in x {}"), "5:15: expected a tile");
  EXPECT_EQ(BodyError("frobnicate x += w"), "5:1: expected a statement, got \"frobnicate\"");
  EXPECT_EQ(BodyError("tile t : f32[1, 4] = 0 dot_q4_K t += w"), "5:24: dot_q4_K takes 2 operands, got 1");
  EXPECT_EQ(BodyError("tile t : f32[1, 4] = 0 dot_f32 t += x, x behind 3"),
            "5:42: dot_f32 has no attribute \"behind\"");
  EXPECT_EQ(BodyError("tile t : f32[1, 4] = 0 dot_f32 t += x, x ahead 3, ahead 4"), "5:51: attribute given twice");
  EXPECT_EQ(BodyError("prefetch x[r]"), "5:13: expected \",\", got \"]\"");
  EXPECT_EQ(BodyError("alloc a : f32[Z] scratch"), "5:15: expected a symbol");
  EXPECT_EQ(BodyError("x[r, 0] = 1 @[unfinished"), "5:13: @[ without ] on its line");
  EXPECT_EQ(BodyError("x[r, 0] = 1 }"), "6:3: expected the end of the text, got \"}\"");
}

TEST(ParseErrors, Expressions) {
  EXPECT_EQ(ExprError("x + i"), "1:3: + needs operands of one dtype, got f32 and i64");
  EXPECT_EQ(ExprError("exp(i)"), "1:4: exp needs a float, got i64");
  EXPECT_EQ(ExprError("x << 1"), "1:3: << needs an integer, got f32");
  EXPECT_EQ(ExprError("x & x"), "1:3: & needs an integer or bool, got f32");
  EXPECT_EQ(ExprError("select(x, x, x)"), "1:7: expected bool, got f32");
  EXPECT_EQ(ExprError("i + 0.5"), "1:3: expected i64, got a real literal");
  EXPECT_EQ(ExprError("300i8"), "1:1: literal out of range of i8");
  EXPECT_EQ(ExprError("1e10f16"), "1:1: literal out of range of f16");
  EXPECT_EQ(ExprError("-1u32"), "1:2: literal out of range of u32");
  EXPECT_EQ(ExprError("99999999999999999999"), "1:1: integer needs more than 64 bits");
  EXPECT_EQ(ExprError("1e999"), "1:1: number out of range");
  EXPECT_EQ(ExprError("1abc"), "1:1: expected a scalar dtype after the number, got \"abc\"");
  EXPECT_EQ(ExprError("0.5i32"), "1:1: expected i32, got a real literal");
  EXPECT_EQ(ExprError("bits<i64>(x)"), "1:6: bits<i64> of f32: the sizes differ");
  EXPECT_EQ(ExprError("cast<q4_K>(x)"), "1:6: expected a scalar dtype, got \"q4_K\"");
  EXPECT_EQ(ExprError("v"), "1:2: expected an index of the buffer, got the end of the text");
  EXPECT_EQ(ExprError("i[0]"), "1:1: \"i\" is not a buffer");
  EXPECT_EQ(ExprError("sum i in 0..4 { x }"), "1:5: expected vec or for, got \"i\"");
  EXPECT_EQ(ExprError("sum accs 99 vec c in 0..4 { x }"),
            "1:10: expected a number of accumulators (1 to 16), got \"99\"");
  EXPECT_EQ(ExprError("sum for c in 0..4 { let x = 1.0; x }"), "1:25: \"x\" is already declared");
  EXPECT_EQ(ExprError("sum for c in 0..4 { let c = 1; c }"), "1:25: \"c\" is already declared");
  EXPECT_EQ(ExprError("sum for c in 0..4 { let t = t; t }"), "1:29: unknown name \"t\"");
  EXPECT_EQ(ExprError("(sum for c in 0..4 { let t = x; t }) + t"), "1:40: unknown name \"t\"");
  EXPECT_EQ(ExprError("sum for c in 0..4 { let t = x }"), "1:31: expected an expression, got \"}\"");
  EXPECT_EQ(ExprError("sum for c in 0..4 { let t = x; i < 1 }"), "1:32: expected a number to reduce");
  EXPECT_EQ(ExprError("x +"), "1:4: expected an expression, got the end of the text");
  EXPECT_EQ(ExprError("(x"), "1:3: expected \")\", got the end of the text");
}

TEST(ParseErrors, DepthIsLimited) {
  EXPECT_THAT(ExprError(std::string(100000, '(')), testing::HasSubstr("nested too deeply"));
  EXPECT_THAT(ExprError(std::string(100000, '-') + "x"), testing::HasSubstr("nested too deeply"));
  std::string chain = "x";
  for (int i = 0; i < 100000; ++i) chain += "+x";
  EXPECT_THAT(ExprError(chain), testing::HasSubstr("nested too deeply"));
  std::string literals = "1";
  for (int i = 0; i < 100000; ++i) literals += "+1";
  EXPECT_THAT(ExprError(literals), testing::HasSubstr("nested too deeply"));
  std::string loads, blocks;
  for (int i = 0; i < 100000; ++i) loads += "cast<i64>(v[";
  EXPECT_THAT(ExprError(loads), testing::HasSubstr("nested too deeply"));
  for (int i = 0; i < 100000; ++i) blocks += "if true {";
  EXPECT_THAT(BodyError(blocks), testing::HasSubstr("nested too deeply"));
  std::string sums;
  for (int i = 0; i < 3000; ++i) sums += absl::StrFormat("sum vec c%d in 0..4 {", i);
  EXPECT_THAT(ExprError(sums), testing::HasSubstr("nested too deeply"));
  std::string lets;
  for (int i = 0; i < 3000; ++i) lets += absl::StrFormat("sum vec c%d in 0..4 { let v%d =", i, i);
  EXPECT_THAT(ExprError(lets), testing::HasSubstr("nested too deeply"));
}

TEST(Parse, Sugar) {
  const auto same = [](const std::string& a, const std::string& b) {
    const StatusOr<Kernel> x = ParseKernel(a), y = ParseKernel(b);
    EXPECT_TRUE(x.ok() && y.ok()) << x.status() << y.status();
    return x.ok() && y.ok() && Same(*x, *y);
  };
  const std::string head = "kernel k (\n  x : f32[8] inout\n) { grid r in 0..1 { ", tail = "\n} }";
  EXPECT_TRUE(
      same("kernel k (a, b : f32[8] in, c : f32[8] out) { grid r in 0..1 { } }",
           "kernel k (\n a : f32[8] in\n b : f32[8] in\n c : f32[8] out align 64\n) { grid r in 0..1 by 1 { } }"));
  EXPECT_TRUE(same(head + "tile a, b : f32[4] = 1, 2" + tail, head + "tile a : f32[4] = 1 tile b : f32[4] = 2" + tail));
  EXPECT_TRUE(same(head + "tile a, b : f32[4] = 1" + tail, head + "tile a : f32[4] = 1.0; tile b : f32[4] = 1" + tail));
  EXPECT_TRUE(same(head + "tile a : f32[4] = 1 map (i) in a { }" + tail,
                   head + "tile a : f32[4] = 1 map (i) in a [4] { }" + tail));
  EXPECT_TRUE(same(head + "prefetch x" + tail, head + "prefetch x[:]" + tail));
  EXPECT_TRUE(same(head + "x[0] = 1   # a comment" + tail, head + "x[0] = 1" + tail));
}

TEST(Parse, ManyKernels) {
  const std::string text = ReadFile("rms_norm_q8") + ReadFile("attn_decode");
  const StatusOr<std::vector<Kernel>> kernels = ParseKernels(text);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 2u);
  EXPECT_EQ((*kernels)[1].name, "attn_decode");
}

// Damaged text gives an error or another kernel, which then prints and parses as any other.
TEST(Parse, MutatedTextNeverCrashes) {
  constexpr uint32_t kSeed = 20240611;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  std::vector<std::string> sources;
  for (const char* name : {"rms_norm_q8", "down_residual", "gate_up_silu", "attn_decode"})
    sources.push_back(ReadFile(name));
  const std::string_view pieces[] = {"(",
                                     ")",
                                     "[",
                                     "]",
                                     "{",
                                     "}",
                                     ":",
                                     "+",
                                     "-",
                                     "..",
                                     "0",
                                     "1.5",
                                     "f16",
                                     "q4_K",
                                     "@",
                                     "@[",
                                     "\\",
                                     "contract(",
                                     "else",
                                     "in",
                                     "map",
                                     "tile",
                                     "x",
                                     "M",
                                     "\n",
                                     "#",
                                     "sum vec",
                                     "99999999999999999999",
                                     "9223372036854775807",
                                     "*",
                                     "%",
                                     ",",
                                     "\xff",
                                     "nan",
                                     "inff16"};
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = sources[random() % sources.size()];
    for (uint32_t edits = random() % 4 + 1; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      switch (random() % 5) {
        case 0: text.erase(at, random() % 8 + 1); break;
        case 1: text.insert(at, pieces[random() % std::size(pieces)]); break;
        case 2: text[at] = static_cast<char>(random() % 256); break;
        case 3: text.insert(at, text.substr(random() % text.size(), random() % 40)); break;
        default: text.resize(at + 1); break;
      }
    }
    const StatusOr<Kernel> kernel = ParseKernel(text);
    if (!kernel.ok()) {
      ASSERT_THAT(std::string(kernel.status().message()), testing::ContainsRegex("^[0-9]+:[0-9]+: .")) << text;
      continue;
    }
    ++parsed;
    const std::string printed = Print(*kernel);
    const StatusOr<Kernel> again = ParseKernel(printed);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
    ASSERT_TRUE(Same(*kernel, *again)) << printed;
    ASSERT_EQ(Print(*again), printed);
  }
  EXPECT_GT(parsed, 500);  // enough of them exercise the printer as well
}

}  // namespace
}  // namespace quern::kir
