// Graphs that fuzzing by coverage would make, the same ones each time: what verifies prints, parses back and plans.
#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "hir/module.h"
#include "support/environment.h"
#include "support/mutate_graph.h"
#include "support/random_graph.h"

namespace quern::compiler {
namespace {

using testing::MutateGraph;

constexpr uint64_t kSeeds = 60;
constexpr int kChanges = 8;  // one upon another: far from what a random graph is

TEST(MutatedGraphs, AreGraphsAndOthers) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const ir::Graph from = testing::MakeRandomGraph(seed).graph;
    const ir::Graph made = MutateGraph(from, seed);
    ASSERT_TRUE(ir::Verify(made).ok()) << ir::Verify(made) << ir::Print(made);
    EXPECT_EQ(ir::Print(made), ir::Print(MutateGraph(from, seed))) << "another each time";
    const StatusOr<ir::Graph> again = ir::Parse(ir::Print(made));
    ASSERT_TRUE(again.ok()) << again.status() << ir::Print(made);
    EXPECT_TRUE(ir::SameGraph(made, *again)) << ir::Print(made);
    changed += !ir::SameGraph(from, made);
  }
  EXPECT_GT(changed, static_cast<int>(kSeeds * 9 / 10));
}

TEST(MutatedGraphs, NeverEndInAnInternalError) {
  const uint64_t seeds = kSeeds * testing::FromEnvironment("QUERN_LONG_TESTS", 1);
  PipelineOptions options;
  options.verify_steps = true;
  int planned = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    ir::Graph graph = testing::MakeRandomGraph(seed).graph;
    for (int change = 0; change < kChanges; ++change) {
      graph = MutateGraph(graph, seed * kChanges + change);
      const StatusOr<hir::Module> module = hir::WrapGraph(graph);
      if (!module.ok()) continue;
      const StatusOr<ir::Graph> prepared = PrepareGraph(*module, options);
      const Status status = prepared.ok() ? PlanVariant(*prepared, {}, options).status() : prepared.status();
      ASSERT_NE(status.code(), absl::StatusCode::kInternal)
          << "seed " << seed << ", change " << change << ": " << status << "\n"
          << ir::Print(graph);
      planned += status.ok();
    }
  }
  EXPECT_GT(planned, static_cast<int>(seeds * kChanges / 2));
}

}  // namespace
}  // namespace quern::compiler
