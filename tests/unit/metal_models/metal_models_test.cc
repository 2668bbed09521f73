// Whole programs from their Metal text, on the CPU: a small graph beside the JIT, random graphs beside the double interpreter.
//
// QUERN_RANDOM_SEED=n runs that graph alone and prints it; QUERN_LONG_TESTS=n runs n times as many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/metal/emit_metal.h"
#include "support/shim_device.h"
#include "unit/compiler/random_case.h"
#include "unit/device/device_graph.h"
#include "unit/device/device_run.h"

namespace quern {
namespace {

using testing::DeviceGraph;

TEST(MetalModels, StepsAreThoseOfTheJit) {
  DeviceGraph graph;
  ASSERT_NO_FATAL_FAILURE(testing::PlanForDevice(testing::kSmallGraph, testing::SmallGuards(), graph));
  const auto program = testing::MakeLoadable(SignatureOf(graph.prepared), graph.plans, &metal::Targets()[0]);
  ASSERT_TRUE(program.ok()) << program.status();
  auto executor = device::Executor::Create(MakeShimDevice(), SignatureOf(graph.prepared), device::VariantsOf(*program));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE(testing::BindSmall(**executor).ok());
  testing::Jitted jitted;
  ASSERT_NO_FATAL_FAILURE(testing::MakeJitted(testing::kSmallGraph, jitted));
  int64_t past = 0;
  for (const int64_t rows : {5, 1, 1, 7, 1, 2}) {
    SCOPED_TRACE(past);
    const auto got = testing::StepSmall(**executor, past, rows), expected = testing::StepSmall(*jitted.executable, past, rows);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_NO_FATAL_FAILURE(testing::ExpectClose(*got, *expected, 1e-5));
    past += rows;
  }
}

// Of the graphs of tests/unit/compiler/random_graph_test.cc those without 64-bit floats.
TEST(MetalModels, RandomGraphsMeanTheSame) {
  const uint64_t only = testing::FromEnvironment("QUERN_RANDOM_SEED", 0);
  const uint64_t graphs = 64 * testing::FromEnvironment("QUERN_LONG_TESTS", 1);
  int64_t elements = 0, launches = 0, refused = 0;
  for (uint64_t i = 0; i < graphs && !HasFatalFailure(); ++i) {
    const uint64_t seed = only != 0 ? only : testing::SeedOf(i % 8, i / 8);
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    StatusOr<testing::Case> made = testing::MakeCase(seed, /*quantises=*/false);
    ASSERT_TRUE(made.ok()) << made.status();
    const Status evaluated = testing::MakeOracles(*made);
    ASSERT_TRUE(evaluated.ok()) << evaluated;
    compiler::PipelineOptions options;
    options.fuse = i % 4 != 3;
    options.facts.blocks = metal::Targets()[0].facts;
    options.facts.blocks->half_products = false;  // whose error is another one
    const StatusOr<testing::CompiledGraph> graph = testing::PlanGraph(made->random.graph, made->guard, options);
    ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << ir::Print(made->random.graph);
    testing::Trial& trial = made->trials.back();
    const auto got = testing::RunOnDevice(*graph, MakeShimDevice(), &metal::Targets()[0], trial.binding, trial.bytes);
    if (absl::StrContains(got.status().message(), "f64")) {
      EXPECT_TRUE(absl::IsUnimplemented(got.status())) << got.status();
      ++refused;
      continue;
    }
    ASSERT_TRUE(got.ok()) << got.status() << "\n" << ir::Print(made->random.graph);
    for (size_t o = 0; o < got->size(); ++o) {
      const ir::RefTensor& expected = trial.oracle->expected()[o];
      const auto values = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*got)[o]);
      ASSERT_TRUE(values.ok()) << values.status();
      EXPECT_EQ(trial.oracle->WorstText(static_cast<int>(o), *values), "") << ir::Print(made->random.graph);
      elements += expected.elements();
    }
    launches += static_cast<int64_t>(graph->plan.launches.size());
    if (only != 0) break;
  }
  std::printf("%d graphs, %d of them refused for f64; %d launches, %d elements\n", static_cast<int>(graphs), static_cast<int>(refused),
              static_cast<int>(launches), static_cast<int>(elements));
}

}  // namespace
}  // namespace quern
