// Every region of a whole model as a graph of its own: it verifies, fuses to the same region again, and replays.
#include <gtest/gtest.h>

#include "check/region_graph.h"
#include "check/replay.h"
#include "compiler/model.h"
#include "opt/passes.h"
#include "support/random_graph.h"

namespace quern::testing {
namespace {

TEST(RegionGraph, OfAWholeModel) {
  const auto opened = compiler::OpenModel(QUERN_SOURCE_DIR "/models/addition.gguf", {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  const compiler::PipelineOptions options = *compiler::PipelineOptionsOf({});
  const auto prepared = compiler::PrepareGraph(opened->spec.module, options);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const auto cache = std::make_shared<KernelCache>(*jit::Engine::Create({.threads = 1}));
  int regions = 0, same = 0;
  for (const SymbolRanges& guard : compiler::StepGuards(/*invariant=*/false)) {
    if (guard.begin()->second.high > 8) continue;
    const auto variant = compiler::PlanVariant(*prepared, guard, options);
    ASSERT_TRUE(variant.ok()) << variant.status();
    for (int n = 0; n < static_cast<int>(variant->graph.nodes().size()); ++n) {
      if (variant->graph.node(n).bodies.empty()) continue;
      const auto graph = check::RegionGraph(variant->graph, n, variant->plan, variant->plan.bodies[0].values);
      ASSERT_TRUE(graph.ok()) << graph.status();
      check::Reproduction reproduction;
      reproduction.graph = *graph;
      for (const auto& [symbol, range] : graph->symbols) reproduction.sizes[symbol] = range.low + 2;
      reproduction.bytes = RandomBytes(*graph, reproduction.sizes, 1);
      ASSERT_TRUE(check::Check(reproduction).ok()) << check::Check(reproduction) << ir::Print(*graph);
      const auto fused = opt::FuseRegions(*graph, {.families = codegen::Families()});
      ASSERT_TRUE(fused.ok()) << fused.status();
      ++regions;
      for (const ir::Node& node : fused->nodes())
        same += !node.bodies.empty() && ir::SameGraph(node.body(), variant->graph.node(n).body());
      check::Planned planned{*graph, *fused, {}};
      const auto plan = lir::BuildPlan(*fused, fused->symbols, options.facts);
      ASSERT_TRUE(plan.ok()) << plan.status() << ir::Print(*fused);
      planned.plan = *plan;
      ExecutableOptions executable;
      executable.cache = cache;
      executable.pool = std::make_shared<ThreadPool>(1);
      const auto replayed = check::Replay(reproduction, planned, std::move(executable));
      ASSERT_TRUE(replayed.ok()) << replayed.status() << ir::Print(*graph);
      EXPECT_FALSE(replayed->has_value()) << (*replayed)->ToString() << ir::Print(*graph);
    }
  }
  EXPECT_GT(regions, 20);
  EXPECT_EQ(same, regions);  // the others would be written as Region nodes
  std::printf("%d regions, %d of them fuse to the same again\n", regions, same);
}

}  // namespace
}  // namespace quern::testing
