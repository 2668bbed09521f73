// Errors of graphs through the public interface: every op says what is wrong in parts, as blocks do, and where; names
// that were misspelt come with the one that was meant.
#include <gtest/gtest.h>

#include "quern/graph.h"

namespace quern {
namespace {

using Build = void (*)(Graph&);

Error ErrorOf(Build build) {
  Graph graph("g");
  graph.Symbol("N", 1, 9);
  build(graph);
  EXPECT_FALSE(graph.Compile({.threads = 1}).ok());
  return graph.status().details();
}

struct Row {
  Build build;
  ErrorCode code;
  const char *op, *operand, *expected, *got, *where;
};

TEST(GraphErrors, OpsSayWhatIsWrong) {
  const std::vector<Row> rows = {
      {[](Graph& g) { g.Op("Add", {g.Input("x", "f32[3]"), g.Input("y", "f32[4]")}, {}, "sum"); },
       ErrorCode::kShapeMismatch, "Add", "b", "extents that broadcast with [3]", "f32[4]", "sum"},
      {[](Graph& g) { g.Op("Add", {g.Input("x", "bool[3]"), g.Input("y", "bool[3]")}); }, ErrorCode::kDTypeMismatch,
       "Add", "a", "a number", "bool", "%2"},
      {[](Graph& g) { g.Op("Add", {g.Input("x", "f32[3]")}); }, ErrorCode::kInputCount, "Add", "", "2", "1", "%1"},
      {[](Graph& g) { g.Op("Softmax", {g.Input("x", "f32[3]")}, {{"axis", "last"}}); }, ErrorCode::kBadAttribute,
       "Softmax", "axis", "an int", "\"last\"", "%1"},
      {[](Graph& g) { g.Op("Softmax", {g.Input("x", "f32[3]")}, {{"axis", 4}}); }, ErrorCode::kBadAttribute, "Softmax",
       "axis", "-1 to 0", "4", "%1"},
      {[](Graph& g) { g.Op("Reshape", {g.Input("x", "f32[3]")}, {{"shape", std::vector<std::string>{"2+"}}}); },
       ErrorCode::kBadAttribute, "Reshape", "shape", "extents", "", ""},
      {[](Graph& g) { g.Op("MatMul", {g.Input("x", "f32[N, 3]"), g.Param("w", "f32[4, 5]")}, {}, "head"); },
       ErrorCode::kShapeMismatch, "MatMul", "b", "[.., 3, N]", "f32[4, 5]", "head"},
      {[](Graph& g) { g.Op("Add", {g.Input("x", "f32[3]"), {9, 0}}); }, ErrorCode::kUnknownOperand, "Add", "b", "",
       "%9.0", "%1"},
      {[](Graph& g) { g.Op("Add", {g.Input("x", "f32[3]"), {}}); }, ErrorCode::kUnknownOperand, "Add", "b", "",
       "absent", "%1"},
      {[](Graph& g) {
         const Value q = g.Input("q", "f32[1, 3, 64]"), k = g.Input("k", "f64[1, 3, 64]");
         g.Op("Attention", {q, k, q}, {{"heads", 1}, {"kv_heads", 1}, {"head_dim", 64}});
       },
       ErrorCode::kUnsupported, "Attention", "k", "f32, f16 or bf16", "f64[1, 3, 64]", "%2"},
      {[](Graph& g) {
         const Value q = g.Input("q", "f64[1, 3, 64]"), k = g.Input("k", "f32[1, 3, 64]");
         g.Op("Attention", {q, k, q}, {{"heads", 1}, {"kv_heads", 1}, {"head_dim", 64}});
       },
       ErrorCode::kUnsupported, "Attention", "k", "f64, as q", "f32[1, 3, 64]", "%2"},
      {[](Graph& g) {
         const Value q = g.Input("q", "f32[N, 64]");
         g.Op("Attention", {q, q, q}, {{"heads", 1}, {"kv_heads", 1}, {"head_dim", 64}});
       },
       ErrorCode::kShapeMismatch, "Attention", "q", "[B, S, 64]", "f32[N, 64]", "%1"},
      {[](Graph& g) {
         const Value q = g.Input("q", "f32[N, 64]");
         g.Block("Attention", {q, q, q}, {{"heads", 1}, {"head_dim", 64}}, "enc");
       },
       ErrorCode::kShapeMismatch, "Attention", "q", "[B, S, 64]", "f32[N, 64]", "enc"},
      {[](Graph& g) { g.Block("Linear", {g.Input("x", "f32[N, 64]"), g.Param("w", "f64[64, 8]")}); },
       ErrorCode::kDTypeMismatch, "Linear", "w", "f32, f16, bf16 or a block format beside f32", "f64", "linear"},
      {[](Graph& g) { g.Block("Linear", {g.Input("x", "f16[N, 64]"), g.Param("w", "f32[64, 8]")}); },
       ErrorCode::kDTypeMismatch, "Linear", "w", "f16 beside f16", "f32", "linear"},
      {[](Graph& g) { g.Block("Param", {}, {{"name", "w"}}); }, ErrorCode::kUnsupported, "Param", "", "",
       "adding one by name, without its type,", "param"},
      {[](Graph& g) { g.Block("Constant", {}); }, ErrorCode::kUnsupported, "Constant", "", "",
       "adding one by name, without its type,", "constant"},
      {[](Graph& g) { g.Block("Input", {}, {{"name", "x"}}); }, ErrorCode::kUnsupported, "Input", "", "",
       "adding one by name, without its type,", "input"},
      {[](Graph& g) { g.Block("Mir", {}); }, ErrorCode::kUnsupported, "Mir", "", "",
       "adding one by name, without its op,", "%0"},
      {[](Graph& g) { g.Op("Constant", {}); }, ErrorCode::kUnsupported, "Constant", "", "",
       "adding one by name, without what it holds,", "%0"},
      {[](Graph& g) { g.Input("x", "f32[3]"), g.Param("x", "f32[3]"); }, ErrorCode::kDuplicateName, "Param", "x", "",
       "", "x"},
  };
  for (const Row& row : rows) {
    const Error e = ErrorOf(row.build);
    EXPECT_EQ(static_cast<int>(e.code), static_cast<int>(row.code)) << e.message;
    EXPECT_EQ(e.op, row.op) << e.message;
    EXPECT_EQ(e.operand, row.operand) << e.message;
    EXPECT_EQ(e.expected, row.expected) << e.message;
    if (*row.got != 0) EXPECT_EQ(e.got, row.got) << e.message;
    EXPECT_EQ(e.where, row.where) << e.message;
    if (*row.where != 0)
      EXPECT_NE(e.message.find(std::string("(in ") + row.where + ")"), std::string::npos) << e.message;
    EXPECT_EQ(e.message.find("(in mir)"), std::string::npos);
  }
}

TEST(GraphErrors, NamesThatWereMeant) {
  Error e = ErrorOf([](Graph& g) { g.Op("Softmaxx", {g.Input("x", "f32[3]")}); });
  EXPECT_EQ(e.message, "there is no block or op Softmaxx; did you mean Softmax? (in %1)");
  EXPECT_EQ(e.suggestion, "Softmax");
  EXPECT_EQ(ErrorOf([](Graph& g) { g.Block("Linaer", {}); }).suggestion, "Linear");
  EXPECT_EQ(ErrorOf([](Graph& g) { g.Op("Qwertyuiop", {}); }).suggestion, "");
  EXPECT_EQ(ErrorOf([](Graph& g) { g.Op("Softmax", {g.Input("x", "f32[3]")}, {{"axes", 0}}); }).suggestion, "axis");
  EXPECT_EQ(ErrorOf([](Graph& g) {
              g.Block("Linear", {g.Input("x", "f32[2, 3]"), g.Param("w", "f32[3, 3]")}, {{"weight_layuot", "nk"}});
            }).suggestion,
            "weight_layout");
  e = ErrorOf([](Graph& g) {
    g.Input("k_cache", "f32[3]");
    g.Carry("k_cahce", g.Input("x", "f32[3]"));
  });
  EXPECT_EQ(e.code, ErrorCode::kNone) << "found when the graph is compiled";
  Graph carried("g");
  const Value x = carried.Input("k_cache", "f32[3]");
  carried.Carry("k_cahce", carried.Op("Neg", {x}));
  const Result<Program> refused = carried.Compile({.threads = 1});
  EXPECT_EQ(refused.code(), ErrorCode::kUnknownName) << refused.error();
  EXPECT_EQ(refused.details().suggestion, "k_cache") << refused.error();

  const std::vector<float> w(3), values(3);
  Graph graph("g");
  graph.Symbol("SEQ", 1, 8);
  graph.Output("logits", graph.Op("Add", {graph.Input("tokens", "f32[SEQ, 3]"), graph.Param("weights", "f32[3]", w)}));
  Result<Program> program = graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  std::vector<float> y(3);
  EXPECT_EQ(program->Bind("weigths", w).details().suggestion, "weights");
  Result<void> ran = program->Run({In("token", values, {1, 3})}, {Out("logits", y, {1, 3})});
  EXPECT_EQ(ran.details().suggestion, "tokens");
  EXPECT_EQ(ran.error(), "there is no input token; there is: tokens; did you mean tokens? (in g)");
  ran = program->Run({In("tokens", values, {1, 3})}, {Out("logit", y, {1, 3})});
  EXPECT_EQ(ran.details().suggestion, "logits");
  ran = program->Run({In("tokens", values, {1, 3})}, {Out("logits", y, {1, 3})}, {{"SEQQ", 1}});
  EXPECT_EQ(ran.details().suggestion, "SEQ");
}

TEST(GraphErrors, OfText) {
  const Result<Graph> graph =
      Graph::Parse("graph g {\n  %0 = Input() {name = \"x\"} : f32[3]\n  %1 = Softmaxx(%0) : f32[3]\n  return %1\n}\n");
  EXPECT_EQ(graph.code(), ErrorCode::kUnknownOp);
  EXPECT_EQ(graph.error(), "3:16: there is no block or op Softmaxx; did you mean Softmax?");
  EXPECT_EQ(graph.details().suggestion, "Softmax");
  const Result<Graph> shapes = Graph::Parse(
      "graph g {\n  %0 = Input() {name = \"x\"} : f32[3]\n  %1 = Input() {name = \"y\"} : f32[4]\n  %2 = Add(%0, %1) : "
      "f32[3]\n  return %2\n}\n");
  EXPECT_EQ(shapes.code(), ErrorCode::kShapeMismatch);
  EXPECT_EQ(shapes.details().operand, "b");
  EXPECT_EQ(shapes.error(), "line 4: Add: b is f32[4], extents that broadcast with [3] expected");
}

// What a check says of an op without a label.
TEST(GraphErrors, OpsWithoutALabelAreNumbered) {
  Graph graph("g");
  const Value x = graph.Input("x", "f32[3]");
  graph.Output("y", graph.Op("Log", {graph.Op("Neg", {x})}));
  Result<Program> program = graph.Compile({.threads = 1, .check = "nan", .check_folder = ""});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> values = {1, 2, 3};
  std::vector<float> y(3);
  const Result<void> ran = program->Run({In("x", values, {3})}, {Out("y", y, {3})});
  EXPECT_EQ(ran.code(), ErrorCode::kCheck);
  EXPECT_EQ(ran.error().rfind("Log of %2 makes a NaN", 0), 0u) << ran.error();
}

}  // namespace
}  // namespace quern
