// Graphs in files of both forms, through the public interface.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "quern/text.h"
#include "support/temp_folder.h"

namespace quern {
namespace {

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(GraphFiles, AreTheSameInBothForms) {
  const testing::TempFolder folder;
  const std::string text = folder.path() + "/a.qir", binary = folder.path() + "/a.qgf",
                    again = folder.path() + "/b.qir";
  std::ofstream(text) << "graph g sym S in 1..64 {\n  %0 = Input() {name = \"x\"} : f32[S, 5]\n"
                         "  %1 = Param() {name = \"w\"} : f32[5, 3]\n"
                         "  %2 = MatMul(%0, %1) {transpose_b = false} : f32[S, 3]\n  return %2\n}\n";
  Result<TextGraph> first = TextGraph::Open(text);
  ASSERT_TRUE(first.ok()) << first.error();
  ASSERT_TRUE(first->Save(binary).ok());
  EXPECT_TRUE(TextGraph::Is(binary));
  EXPECT_TRUE(TextGraph::Is(text));
  Result<TextGraph> second = TextGraph::Open(binary);
  ASSERT_TRUE(second.ok()) << second.error();
  ASSERT_TRUE(second->Save(again).ok());
  EXPECT_EQ(Contents(text), Contents(again));
  EXPECT_EQ(first->Diff(*second), "");
  EXPECT_EQ(first->Describe(), second->Describe());
  for (TextGraph* graph : {&*first, &*second}) {
    Result<Program> program = graph->graph().Compile({.threads = 1});
    ASSERT_TRUE(program.ok()) << program.error();
    ASSERT_TRUE(graph->Run(*program).ok());
  }
  EXPECT_EQ(first->Outputs(), second->Outputs());
}

TEST(GraphFiles, BytesOfBuiltGraphs) {
  const auto build = [](const char* label) {
    Graph graph("built");
    graph.Symbol("ROWS", 1, 9);
    const Value x = graph.Input("x", "f32[ROWS, 8]");
    graph.Output("y", graph.Block("Linear", {x, graph.Param("w", "f32[8, 3]")}, {{"act", "Silu"}}, label));
    return graph;
  };
  const Graph graph = build("up");
  Result<std::string> bytes = graph.Binary();
  ASSERT_TRUE(bytes.ok()) << bytes.error();
  Result<Graph> again = Graph::FromBinary(std::as_bytes(std::span(bytes->data(), bytes->size())));
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(*again->Binary(), *bytes);
  // Its output is still called y.
  Result<Program> program = again->Compile({.threads = 1, .cache = "off"});
  ASSERT_TRUE(program.ok()) << program.error();
  EXPECT_EQ(program->outputs()[0].name, "y");
  Result<Graph> of_text = Graph::Parse(graph.Text());
  ASSERT_TRUE(of_text.ok()) << of_text.error();
  EXPECT_EQ(of_text->Text(), graph.Text());
  EXPECT_EQ(of_text->Compile({.threads = 1, .cache = "off"})->outputs()[0].name, "y");
  EXPECT_EQ(*again->Fingerprint(), *graph.Fingerprint());
  EXPECT_EQ(*build("down").Fingerprint(), *graph.Fingerprint());
  EXPECT_NE(*build("down").Binary(), *bytes);
  EXPECT_EQ(graph.Fingerprint()->size(), 32u);
  const Result<Graph> cut = Graph::FromBinary(std::as_bytes(std::span(bytes->data(), bytes->size() - 1)));
  EXPECT_EQ(cut.code(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace quern
