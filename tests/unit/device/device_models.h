// Whole programs on the device of a target: what every target with blocks of threads is held to.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/device_module.h"
#include "compiler/model.h"
#include "support/block_formats.h"
#include "support/model_weights.h"
#include "unit/compiler/random_case.h"
#include "unit/device/device_graph.h"
#include "unit/device/device_run.h"
#include "unit/device/has_no_blocks.h"

namespace quern::testing {

// Steps of the small graph beside the JIT, whose state goes from one to the next.
inline void ExpectStepsOfTheJit(std::shared_ptr<device::Device> device, const codegen::DeviceTarget& target) {
  DeviceGraph graph;
  ASSERT_NO_FATAL_FAILURE(PlanForDevice(kSmallGraph, SmallGuards(), graph));
  const auto program = MakeLoadable(SignatureOf(graph.prepared), graph.plans, &target);
  ASSERT_TRUE(program.ok()) << program.status();
  auto executor =
      device::Executor::Create(std::move(device), SignatureOf(graph.prepared), device::VariantsOf(*program));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE(BindSmall(**executor).ok());
  Jitted jitted;
  ASSERT_NO_FATAL_FAILURE(MakeJitted(kSmallGraph, jitted));
  int64_t past = 0;
  for (const int64_t rows : {5, 1, 1, 7, 1, 2}) {
    SCOPED_TRACE(past);
    const auto got = StepSmall(**executor, past, rows), expected = StepSmall(*jitted.executable, past, rows);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_NO_FATAL_FAILURE(ExpectClose(*got, *expected, 1e-5));
    past += rows;
  }
}

// The first `count` graphs of tests/unit/compiler/random_graph_test.cc, three of four fused, beside the double
// interpreter. `make_device`: of graph number i. Graphs for which the target refuses f64, when it may, and those with
// ops that only CPUs compute are counted.
//
// QUERN_RANDOM_SEED=n runs that graph alone and prints its kernels; QUERN_LONG_TESTS=n runs n times as many.
inline void ExpectRandomGraphs(uint64_t count,
                               const std::function<std::shared_ptr<device::Device>(uint64_t i)>& make_device,
                               const codegen::DeviceTarget& target, bool has_f64) {
  const uint64_t only = FromEnvironment("QUERN_RANDOM_SEED", 0);
  const uint64_t graphs = only != 0 ? 1 : count * FromEnvironment("QUERN_LONG_TESTS", 1);
  int64_t elements = 0, launches = 0, refused = 0, without = 0;
  for (uint64_t i = 0; i < graphs; ++i) {
    const uint64_t seed = only != 0 ? only : SeedOf(i % 8, i / 8);
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    StatusOr<Case> made = MakeCase(seed, /*on_cpu=*/false);
    ASSERT_TRUE(made.ok()) << made.status();
    const Status evaluated = MakeOracles(*made);
    ASSERT_TRUE(evaluated.ok()) << evaluated;
    compiler::PipelineOptions options;
    options.fuse = only != 0 ? testing::FromEnvironment("QUERN_FUSE", 1) != 0 : i % 4 != 3;
    options.facts.blocks = target.facts;
    options.facts.blocks->half_products = false;  // whose error is another one
    const StatusOr<CompiledGraph> graph = PlanGraph(made->random.graph, made->guard, options);
    if (absl::IsUnimplemented(graph.status()) && HasNoBlocks(made->meaning)) {
      ++without;
      continue;
    }
    ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << ir::Print(made->random.graph);
    if (only != 0) {
      for (const kir::Kernel& kernel : graph->plan.kernels) std::printf("%s\n", kir::Print(kernel).c_str());
    }
    Trial& trial = made->trials.back();
    const auto got = RunOnDevice(*graph, make_device(i), &target, trial.binding, trial.bytes);
    if (!has_f64 && absl::IsUnimplemented(got.status()) && absl::StrContains(got.status().message(), "f64")) {
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
  }
  if (only == 0) EXPECT_LE(2 * (refused + without), static_cast<int64_t>(graphs));  // most have neither
  std::printf("%d graphs, %d of them refused for f64, %d for ops of CPUs; %d launches, %d elements\n",
              static_cast<int>(graphs), static_cast<int>(refused), static_cast<int>(without),
              static_cast<int>(launches), static_cast<int>(elements));
}

struct SizedKernel {
  kir::Kernel kernel;
  Binding sizes;
};

// The kernels of the bundled model with each format of weights, planned for each target as a session plans it. Those
// that are not in `seen` yet go to `check`, with sizes that their plan allows.
inline void ForEachModelKernel(
    std::span<const codegen::DeviceTarget> targets, std::set<std::string>& seen,
    const std::function<void(const codegen::DeviceTarget&, const std::vector<SizedKernel>&)>& check) {
  const auto model = compiler::OpenModel(QUERN_SOURCE_DIR "/models/addition.gguf", {.exact = true});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<DType> formats = AllFormats();
  formats.insert(formats.end(), {DType::kF16, DType::kF32, DType::kBF16});
  for (const DType format : formats) {
    const auto weighed = WithWeights(model->spec.module, format);
    ASSERT_TRUE(weighed.ok()) << weighed.status();
    for (const codegen::DeviceTarget& target : targets) {
      SCOPED_TRACE(absl::StrCat(std::string(Row(format).name), ", ", target.cpu));
      compiler::PipelineOptions options;
      options.exact = true;
      options.facts.blocks = target.facts;
      const auto graph = compiler::PrepareGraph(*weighed, options);
      ASSERT_TRUE(graph.ok()) << graph.status();
      std::vector<SizedKernel> kernels;
      for (const SymbolRanges& guard : compiler::StepGuards(/*invariant=*/false)) {
        if (!ChecksSteps(format, guard)) continue;
        const auto planned = compiler::PlanVariant(*graph, guard, options);
        ASSERT_TRUE(planned.ok()) << planned.status();
        for (const kir::Kernel& kernel : planned->plan.kernels) {
          if (!seen.insert(kir::Print(kernel, {.origins = false, .normalise_names = true})).second) continue;
          const StatusOr<Binding> sizes = SizesFor(planned->plan, seen.size());
          ASSERT_TRUE(sizes.ok()) << sizes.status();
          kernels.push_back({kernel, *sizes});
        }
      }
      if (!kernels.empty()) check(target, kernels);
    }
  }
  std::printf("%d distinct kernels\n", static_cast<int>(seen.size()));
}

}  // namespace quern::testing
