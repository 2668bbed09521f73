// Graphs made of larger pieces through the public interface: extensions, scopes, graphs inside graphs, promoted
// operands, sizes that many models have, policies and the text of every stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "quern/extend.h"
#include "quern/graph.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using Values = Result<std::vector<Value>>;

std::vector<float> Ramp(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

std::vector<float> RunOne(Graph& graph, const std::vector<float>& x, std::vector<int64_t> shape,
                          std::vector<int64_t> out_shape) {
  Result<Program> program = graph.Compile({.threads = 1, .cache = "off"});
  EXPECT_TRUE(program.ok()) << program.error();
  if (!program.ok()) return {};
  int64_t elements = 1;
  for (const int64_t size : out_shape) elements *= size;
  std::vector<float> y(elements);
  const Result<void> ran = program->Run({In("x", x, std::move(shape))}, {Out("y", y, std::move(out_shape))});
  EXPECT_TRUE(ran.ok()) << ran.error();
  return y;
}

// Doubles x `times` times, each inside the one before.
Values Doubled(Graph& g, const std::vector<Value>& in, const std::vector<Attribute>& attributes) {
  const int64_t times = attributes.empty() ? 1 : std::get<int64_t>(attributes[0].value);
  const Value twice = g.Op("Add", {in[0], in[0]});
  if (times <= 1) return Values({twice});
  return Values({g.Block("test.Doubled", {twice}, {{"times", times - 1}})});
}

// Appends a node, an output, a parameter and a size, and then fails.
Values Half(Graph& g, const std::vector<Value>& in, const std::vector<Attribute>&) {
  static const std::vector<float> w(3, 1);
  g.Symbol("LEFT", 1, 2);
  const Value one = g.Op("Exp", {in[0]});
  g.Output("left", one);
  g.Param("left_w", "f32[3]", w);
  g.Specialise("LEFT", 1, 1);
  return Values({g.Op("Reshape", {one}, {{"shape", std::vector<int64_t>{7}}})});
}

Values Complaining(Graph& g, const std::vector<Value>& in, const std::vector<Attribute>&) {
  g.Op("Exp", {in[0]});
  Error error;
  error.code = ErrorCode::kUnsupported;
  error.message = "not today";
  return Values::Failed(error);
}

TEST(Extensions, AreBlocks) {
  ASSERT_TRUE(RegisterExtension("test.Doubled", Doubled).ok());
  EXPECT_EQ(RegisterExtension("test.Doubled", Doubled).code(), ErrorCode::kDuplicateName);
  EXPECT_EQ(RegisterExtension("Linear", Doubled).code(), ErrorCode::kDuplicateName);
  EXPECT_EQ(RegisterExtension("", Doubled).code(), ErrorCode::kInvalid);
  EXPECT_EQ(RegisterExtension("test.Null", nullptr).code(), ErrorCode::kInvalid);
  Graph g("extended");
  g.Symbol("N", 1, 9);
  const Value x = g.Input("x", "f32[N, 3]");
  g.Output("y", g.Block("test.Doubled", {x}, {{"times", 3}}));
  ASSERT_TRUE(g.status().ok()) << g.status().error();
  EXPECT_EQ(RunOne(g, {1, 2, 3}, {1, 3}, {1, 3}), (std::vector<float>{8, 16, 24}));
  EXPECT_THAT(g.Text(), HasSubstr("%1 = Mir.Add(%0, %0) : f32[N, 3]  @\"test.Doubled/%1\""));
  EXPECT_THAT(g.Text(), HasSubstr("@\"test.Doubled/test.Doubled/test.Doubled/%3\""));
  // What it appended needs no extension to be read.
  EXPECT_EQ(Graph::Parse(g.Text())->Text(), g.Text());
  Graph labelled;
  labelled.Block("test.Doubled", {labelled.Input("x", "f32[3]")}, {}, "layers.0");
  EXPECT_THAT(labelled.Text(), HasSubstr("@\"layers.0/%1\""));
}

TEST(Extensions, ThoseThatFailLeaveNothing) {
  ASSERT_TRUE(RegisterExtension("test.Half", Half).ok());
  ASSERT_TRUE(RegisterExtension("test.Complaining", Complaining).ok());
  Graph g("half");
  const Value x = g.Input("x", "f32[5]");
  const std::string before = g.Text();
  Values made = g.Extend("test.Half", {x});
  EXPECT_EQ(made.code(), ErrorCode::kBadAttribute) << made.error();
  EXPECT_THAT(made.details().where, HasSubstr("test.Half/"));
  EXPECT_EQ(g.Text(), before);
  made = g.Extend("test.Complaining", {x}, {}, "here");
  EXPECT_EQ(made.error(), "not today");
  EXPECT_EQ(made.details().where, "here");
  EXPECT_EQ(g.Text(), before);
  EXPECT_EQ(g.Extend("test.Missing", {x}).code(), ErrorCode::kUnknownOp);
  EXPECT_EQ(g.Extend("RmsNorm", {x}).code(), ErrorCode::kInputCount);
  EXPECT_EQ(g.Text(), before);
  // The graph goes on, and no output, size or parameter of the attempt is in its way.
  g.Symbol("LEFT", 1, 7);
  g.Output("y", g.Op("Exp", {x}));
  ASSERT_TRUE(g.status().ok()) << g.status().error();
  EXPECT_EQ(g.Compile({.threads = 1})->outputs().size(), 1u);
  // Asked for as a block, the error is the graph's.
  Graph other;
  other.Block("test.Complaining", {other.Input("x", "f32[5]")});
  EXPECT_EQ(other.status().error(), "not today");
  EXPECT_EQ(other.Text().find("Exp"), std::string::npos);
}

TEST(Extensions, EndsWhereTheyHaveNoEnd) {
  Graph g;
  const Values made = g.Extend("test.Doubled", {g.Input("x", "f32[5]")}, {{"times", 1000}});
  EXPECT_EQ(made.code(), ErrorCode::kInvalid);
  EXPECT_THAT(made.error(), HasSubstr("64 deep"));
}

TEST(Scopes, AreInLabels) {
  Graph g;
  const Value x = g.Input("x", "f32[2, 3]");
  Value y;
  {
    const LabelScope layers = g.Scope("layers.3");
    const Value gamma = g.Param("gamma", "f32[3]");
    const LabelScope norm = g.Scope("norm");
    y = g.Block("RmsNorm", {x, gamma});
  }
  g.Op("Exp", {y}, {}, "after");
  EXPECT_THAT(g.Text(), HasSubstr("@\"layers.3/gamma\""));
  EXPECT_THAT(g.Text(), HasSubstr("@\"layers.3/norm/rms_norm\""));
  EXPECT_THAT(g.Text(), HasSubstr("@\"after\""));
  const LabelScope open = g.Scope("wrong");
  g.Op("MatMul", {x, x}, {}, "product");
  EXPECT_EQ(g.status().details().where, "wrong/product");
}

// A layer of S rows, with a size of its own inside, put into a graph whose rows are BATCH*S, of another S.
TEST(Inline, TakesSizesFromWhereItIsPut) {
  const std::vector<float> w = Ramp(6);
  Graph inner("layer");
  inner.Symbol("S", 1, 4096);
  const Value h = inner.Input("h", "f32[S, 2]");
  Value p = inner.Op("MatMul", {h, inner.Param("w", "f32[2, 3]", w)}, {}, "product");
  p = inner.Op("Reshape", {p}, {{"shape", std::vector<std::string>{"3*S"}}});
  inner.Output("out", inner.Op("Reshape", {p}, {{"shape", std::vector<std::string>{"S", "3"}}}));

  Graph g("outer");
  g.Symbol(kBatch, 1, 8);
  g.Symbol("S", 1, 3);  // another S
  const Value x = g.Input("x", "f32[BATCH, S, 2]");
  const Value rows = g.Op("Reshape", {x}, {{"shape", std::vector<std::string>{"BATCH*S", "2"}}});
  const std::vector<Value> first = g.Inline(inner, {rows}, "layers.0");
  ASSERT_EQ(first.size(), 1u) << g.status().error();
  EXPECT_EQ(g.TypeOf(first[0]), "f32[BATCH*S, 3]");
  EXPECT_THAT(g.Text(), HasSubstr("@\"layers.0/product\""));
  const std::vector<Value> second = g.Inline(inner, {rows});
  EXPECT_THAT(g.Text(), HasSubstr("@\"layer/product\""));
  g.Output("y", g.Op("Add", {first[0], second[0]}));
  ASSERT_TRUE(g.status().ok()) << g.status().error();
  EXPECT_EQ(RunOne(g, {1, 1, 2, 0}, {2, 1, 2}, {2, 3}), (std::vector<float>{10, 14, 18, 4, 8, 12}));
}

TEST(Inline, TakesBodiesAndText) {
  Result<Graph> inner = Graph::Parse(R"(graph chosen sym S in 1..64 {
  %0 = Input() {name = "p"} : bool[]
  %1 = Input() {name = "x"} : f32[S, 2]
  %2 = If(%0, %1) : f32[S, 2] then graph then sym S in 1..64 {
    %0 = Input() {name = "x"} : f32[S, 2]
    %1 = Neg(%0) : f32[S, 2]
    return %1
  } else graph else sym S in 1..64 {
    %0 = Input() {name = "x"} : f32[S, 2]
    return %0
  }
  return %2
})");
  ASSERT_TRUE(inner.ok()) << inner.error();
  Graph g;
  g.Symbol("N", 1, 16);
  const Value x = g.Input("x", "f32[N, 2]");
  const Value p = g.Constant("bool[]", std::as_bytes(std::span("\1", 1)));
  g.Output("y", g.Inline(*inner, {p, g.Op("Concat", {x, x}, {{"axis", 0}})})[0]);
  ASSERT_TRUE(g.status().ok()) << g.status().error();
  EXPECT_EQ(RunOne(g, {1, 2}, {1, 2}, {2, 2}), (std::vector<float>{-1, -2, -1, -2}));
}

TEST(Inline, SaysWhatDoesNotFit) {
  const std::vector<float> w = Ramp(6), other = Ramp(6);
  Graph inner("layer");
  inner.Symbol("S", 1, 4);
  const Value h = inner.Input("h", "f32[S, 2]");
  inner.Output("out", inner.Op("MatMul", {h, inner.Param("w", "f32[2, 3]", w)}));
  const auto fail = [&](const char* type, auto&& change) {
    Graph g("outer");
    g.Symbol("N", 1, 8);
    std::vector<Value> values = {g.Input("x", type)};
    change(g, values);
    const size_t lines = g.Text().size();
    EXPECT_GE(g.Inline(inner, values).size(), 64u);
    EXPECT_EQ(g.Text().size(), lines) << "something was added";
    return g.status().details();
  };
  const auto nothing = [](Graph&, std::vector<Value>&) {};
  Error error = fail("f32[3, 5]", nothing);
  EXPECT_EQ(error.code, ErrorCode::kShapeMismatch);
  EXPECT_EQ(error.operand, "h");
  EXPECT_EQ(fail("f16[3, 2]", nothing).code, ErrorCode::kDTypeMismatch);
  error = fail("f32[N, 2]", nothing);
  EXPECT_EQ(error.code, ErrorCode::kOutOfRange);
  EXPECT_EQ(error.operand, "symbol S");
  EXPECT_EQ(error.got, "N, 1..8");
  EXPECT_EQ(fail("f32[3, 2]", [](Graph&, std::vector<Value>& values) { values.clear(); }).code, ErrorCode::kInputCount);
  EXPECT_EQ(fail("f32[3, 2]", [&](Graph& g, std::vector<Value>&) { g.Param("w", "f32[2, 3]", other); }).code,
            ErrorCode::kDuplicateName);
  EXPECT_EQ(fail("f32[3, 2]", [&](Graph& g, std::vector<Value>&) { g.Param("w", "f32[6]"); }).code,
            ErrorCode::kDuplicateName);
  inner.Symbol("T", 1, 2);
  inner.Carry("h", inner.Op("Exp", {h}));
  EXPECT_EQ(fail("f32[3, 2]", nothing).code, ErrorCode::kUnsupported);
}

TEST(Promoted, CastsWhatThePlainOpRefuses) {
  Graph plain;
  plain.Op("Add", {plain.Input("a", "f16[3]"), plain.Input("b", "f32[3]")});
  EXPECT_EQ(plain.status().code(), ErrorCode::kDTypeMismatch);
  Graph g;
  const Value a = g.Input("a", "f16[3]"), b = g.Input("b", "bf16[3]"), i = g.Input("i", "i32[3]"),
              c = g.Input("c", "bool[3]"), k = g.Input("k", "i64[2]");
  EXPECT_EQ(g.TypeOf(g.Promoted("Add", {a, b})), "f32[3]");
  EXPECT_EQ(g.TypeOf(g.Promoted("Mul", {a, a})), "f16[3]");
  EXPECT_EQ(g.TypeOf(g.Promoted("Where", {c, i, a})), "f32[3]");
  EXPECT_EQ(g.TypeOf(g.Promoted("Concat", {a, b, i}, {{"axis", 0}})), "f32[9]");
  EXPECT_EQ(g.TypeOf(g.Promoted("Gather", {a, k}, {{"axis", 0}})), "f16[2]");
  ASSERT_TRUE(g.status().ok()) << g.status().error();
  EXPECT_THAT(g.Text(), HasSubstr("Mir.Cast(%1) {to = f32}"));
  g.Promoted("Addd", {a, b});
  EXPECT_EQ(g.status().code(), ErrorCode::kUnknownOp);
}

TEST(Sizes, OfBatchesOfSequences) {
  Graph g;
  const Value x = g.InputBatchSeq("x", "f32", {"4"});
  EXPECT_EQ(g.TypeOf(x), "f32[BATCH, SEQ, 4]");
  EXPECT_EQ(g.TypeOf(g.InputBatchSeq("ids", "i32")), "i32[BATCH, SEQ]");
  EXPECT_EQ(g.TypeOf(g.Input("rows", "f32[ROWS, 4]")), "f32[BATCH*SEQ, 4]");
  g.Output("y", g.Op("Reshape", {x}, {{"shape", std::vector<std::string>{"ROWS", "4"}}}));
  ASSERT_TRUE(g.status().ok()) << g.status().error();
  Graph own;
  own.Symbol("ROWS", 1, 4);
  EXPECT_EQ(own.TypeOf(own.Input("x", "f32[ROWS, 4]")), "f32[ROWS, 4]");
  Graph none;
  none.Input("x", "f32[ROWS, 4]");
  EXPECT_EQ(none.status().code(), ErrorCode::kUnboundSymbol);
}

TEST(Policies, MeanTheSame) {
  const std::vector<float> gamma = {1, 2, 3};
  const auto build = [&](FusionPolicy policy) {
    Graph g("norm");
    g.Fusion(policy);
    const Value x = g.Input("x", "f32[2, 3]");
    g.Output("y", g.Block("RmsNorm", {x, g.Param("gamma", "f32[3]", gamma)}));
    return g;
  };
  Graph direct = build(FusionPolicy::kDirect), fusable = build(FusionPolicy::kFusable);
  const auto lowered = [](const Graph& g) { return *g.Dump({.after = "lower"}); };
  EXPECT_THAT(lowered(direct), HasSubstr("= RmsNorm("));
  EXPECT_EQ(lowered(fusable).find("= RmsNorm("), std::string::npos);
  EXPECT_THAT(fusable.Text(), HasSubstr("fusion fusable"));
  const std::vector<float> x = {1, 2, 3, -4, 5, 6};
  const std::vector<float> want = RunOne(direct, x, {2, 3}, {2, 3});
  EXPECT_EQ(RunOne(fusable, x, {2, 3}, {2, 3}), want);
  Result<Graph> plain = direct.LowerForAutodiff();
  ASSERT_TRUE(plain.ok()) << plain.error();
  EXPECT_EQ(plain->Text().find("RmsNorm("), std::string::npos);
  EXPECT_EQ(RunOne(*plain, x, {2, 3}, {2, 3}), want);  // its parameter is bound, its output has its name
}

TEST(Stages, HaveText) {
  Graph g("staged");
  g.Symbol("N", 1, 9);
  const Value x = g.Input("x", "f32[N, 3]");
  g.Output("y", g.Op("Softmax", {x}));
  for (const std::string& stage : DumpStages()) {
    Result<std::string> text = g.Dump({.stage = stage});
    EXPECT_TRUE(text.ok() && !text->empty()) << stage << ": " << text.error();
  }
  EXPECT_THAT(DumpStages(), ::testing::IsSupersetOf({"hir", "mir", "lir", "kir", "llvm", "asm", "ptx", "metal"}));
  for (const std::string& pass : DumpPasses()) {
    Result<std::string> text = g.Dump({.after = pass});
    EXPECT_TRUE(text.ok() && !text->empty()) << pass << ": " << text.error();
  }
  EXPECT_THAT(DumpPasses(), ::testing::IsSupersetOf({"lower", "fuse_regions", "plan"}));
  EXPECT_EQ(g.Dump({.stage = "elf"}).code(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace quern
