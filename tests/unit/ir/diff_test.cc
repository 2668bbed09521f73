// What is said of two graphs that differ.
#include "ir/diff.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"

namespace quern::ir {
namespace {

Graph Parsed(std::string_view text) {
  StatusOr<Graph> graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

constexpr const char* kBefore = R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : f32[S, 4]
  %1 = Constant() hex 0000803f : f32[1]
  %2 = Exp(%0) : f32[S, 4]  @"layers.0"
  %3 = Add(%2, %1) : f32[S, 4]
  %4 = Neg(%3) : f32[S, 4]
  return %4
})";

std::string Changed(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::string text(kBefore);
  for (const auto& [from, to] : changes) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    text = absl::StrReplaceAll(text, {{from, to}});
  }
  return Diff(Parsed(kBefore), Parsed(text));
}

TEST(Diff, NothingButLabels) { EXPECT_EQ(Changed({{"layers.0", "layers.1"}, {"graph g", "graph h"}}), ""); }

TEST(Diff, NodesOfOne) {
  EXPECT_EQ(Changed({{"%4 = Neg(%3) : f32[S, 4]\n  return %4",
                      "%4 = Abs(%3) : f32[S, 4]\n  %5 = Neg(%4) : f32[S, 4]\n  return %5"}}),
            "+ %4 = Abs(%3) : f32[S, 4]\n"
            "~ %5 = Neg(%4) : f32[S, 4]  was %4 = Neg(%3) : f32[S, 4]\n");
  EXPECT_EQ(Changed({{"Exp", "Log"}}),
            "- %2 = Exp(%0) : f32[S, 4]\n+ %2 = Log(%0) : f32[S, 4]\n"
            "~ %3 = Add(%2, %1) : f32[S, 4]  was %3 = Add(%2, %1) : f32[S, 4]\n");
  EXPECT_EQ(Changed({{"0000803f", "00000040"}}),
            "- %1 = Constant() : f32[1]\n+ %1 = Constant() : f32[1]\n"
            "~ %3 = Add(%2, %1) : f32[S, 4]  was %3 = Add(%2, %1) : f32[S, 4]\n");
}

TEST(Diff, OperandsOutputsAndSizes) {
  EXPECT_EQ(Changed({{"return %4", "return %4 as \"y\""}}), "~ output 0 is called y  was 0\n");
  EXPECT_EQ(Changed({{"Add(%2, %1)", "Add(%0, %1)"}}),
            "~ %3 = Add(%0, %1) : f32[S, 4]  was %3 = Add(%2, %1) : f32[S, 4]\n");
  EXPECT_EQ(Changed({{"return %4", "return %3, %4"}}), "- output 0 is %4\n+ output 0 is %3\n+ output 1 is %4\n");
  EXPECT_EQ(Changed({{"1..8", "1..9"}}), "- sym S in 1..8\n+ sym S in 1..9\n");
}

}  // namespace
}  // namespace quern::ir
