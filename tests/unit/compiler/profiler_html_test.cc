// The report of a graph of one's own, where the names of tensors are anyone's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "quern/graph.h"
#include "quern/profile.h"

namespace quern {
namespace {

// What the page carries; null where it cannot be read.
nlohmann::json DataOf(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"profile\">";
  const size_t begin = html.find(open) + open.size(), end = html.find("</script>", begin);
  return nlohmann::json::parse(html.substr(begin, end - begin), nullptr, false);
}

TEST(ProfilerHtml, AGraphWithHostileNames) {
  setenv("XDG_CACHE_HOME", testing::TempDir().c_str(), 1);  // where the machine's peaks are kept
  const std::string weight = "w</script><script>alert(1)</script>", label = "layers.0/<!--<b>";
  const std::vector<float> w(37 * 13, 0.25f), x(5 * 37, 2.0f);
  Graph graph("graph<script>");
  graph.Symbol("N", 1, 50);
  const Value product =
      graph.Op("MatMul", {graph.Input("x", "f32[N, 37]"), graph.Param(weight, "f32[37, 13]", w)}, {}, label);
  graph.Output("y", graph.Op("Silu", {product}, {}, label + "/act"));
  Result<Program> program = graph.Compile({.threads = 1, .cache = "off"});
  ASSERT_TRUE(program.ok()) << program.error();
  Result<Profiler> profiler = Profiler::Attach(*program);
  ASSERT_TRUE(profiler.ok()) << profiler.error();
  std::vector<float> y(5 * 13);
  ASSERT_TRUE(program->Run({In("x", x, {5, 37})}, {Out("y", y, {5, 13})}).ok());
  Result<std::string> html = profiler->Html();
  ASSERT_TRUE(html.ok()) << html.error();
  EXPECT_EQ(html->find("alert(1)</script>"), std::string::npos);
  const nlohmann::json data = DataOf(*html);
  ASSERT_FALSE(data.is_discarded());
  ASSERT_EQ(data["sections"].size(), 1u);
  const nlohmann::json& section = data["sections"][0];
  bool named = false;
  for (const auto& buffer : section["buffers"]) named |= buffer["name"] == weight;
  EXPECT_TRUE(named) << section["buffers"];

  // One kernel, whose statements lead to both ops, and they to the blocks.
  ASSERT_EQ(section["kernels"].size(), 1u) << section["kernels"];
  const nlohmann::json& kernel = section["kernels"][0];
  std::set<int> from_kir, from_mir, from_hir;
  for (const int op : kernel["stages"]["kir"]["ops"])
    if (op >= 0) from_kir.insert(op);
  for (const auto& line : kernel["stages"]["mir"]["ops"]) from_mir.insert(line.begin(), line.end());
  for (const auto& line : kernel["stages"]["hir"]["ops"]) from_hir.insert(line.begin(), line.end());
  EXPECT_EQ(kernel["origins"].size(), 2u) << kernel["origins"];
  EXPECT_EQ(from_kir.size(), 2u) << kernel["kir"];
  EXPECT_EQ(from_mir, from_kir) << kernel["stages"]["mir"];
  EXPECT_EQ(from_hir, from_kir) << kernel["stages"]["hir"];
  EXPECT_NE(kernel["stages"]["hir"]["text"].get<std::string>().find(weight), std::string::npos)
      << kernel["stages"]["hir"];
}

}  // namespace
}  // namespace quern
