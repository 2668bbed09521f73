// Attention of queries, keys and values of every float dtype each, compiled and held to the double interpreter: few
// rows and many, every mask, sequences, layouts. None is refused.
#include <cstring>

#include "support/attention_text.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

void ExpectAttention(const AttentionText& text, const LevelRunner& level) {
  SCOPED_TRACE(absl::StrCat(text.Name(), " for ", level.target->name));
  const StatusOr<ir::Graph> graph = ir::Parse(text.ToString());
  ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << text.ToString();
  StatusOr<compiler::PipelineOptions> options = compiler::PipelineOptionsOf({});
  ASSERT_TRUE(options.ok()) << options.status();
  options->verify_steps = true;
  const StatusOr<CompiledGraph> compiled = PlanGraph(*graph, {}, *options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  BytesByName bytes = RandomBytes(*graph, {}, 1);
  ir::Feeds feeds = RandomFeeds(*graph, {}, 1);
  for (const auto& [name, values] : text.Integers()) {
    const auto given = bytes.find(name);
    if (given == bytes.end()) continue;
    std::memcpy(given->second.data(), values.data(), values.size() * sizeof(int32_t));
    feeds[name].integers.assign(values.begin(), values.end());
  }
  const auto outputs = RunGraph(*compiled, level, 2, {}, bytes);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  StatusOr<check::GraphOracle> oracle = check::GraphOracle::Create(*graph, {}, feeds, 1);
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  const ir::RefTensor& expected = oracle->expected()[0];
  const auto got = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*outputs)[0]);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(oracle->WorstText(0, *got), "");
}

// Every `step`-th of them, from `first` on.
void ExpectAll(const char* cpu, int first, int step) {
  const StatusOr<const cpu::Target*> target = cpu::ResolveTarget(cpu);
  ASSERT_TRUE(target.ok()) << target.status();
  const StatusOr<LevelRunner> level = LevelRunner::Create(**target);
  if (absl::IsFailedPrecondition(level.status())) GTEST_SKIP() << level.status();
  ASSERT_TRUE(level.ok()) << level.status();
  ForEachAttention([&](const AttentionText& text, int turn) {
    if (turn % step == first) ExpectAttention(text, *level);
  });
}

TEST(AttentionDTypes, OfThisMachine) { ExpectAll("native", 0, 1); }
TEST(AttentionDTypes, TheLeastLevel) { ExpectAll("x86-64-v2", 1, 13); }
TEST(AttentionDTypes, Avx2) { ExpectAll("x86-64-v3", 3, 13); }
TEST(AttentionDTypes, Avx512WithoutPairs) { ExpectAll("x86-64-v4", 5, 13); }

}  // namespace
}  // namespace quern
