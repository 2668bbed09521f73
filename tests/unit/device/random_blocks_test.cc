// The random graphs that the targets for CPUs are held to, planned for blocks of threads and run on the emulated
// device: every kernel that the schedules make, against the double interpreter, fused and with every op on its own. The
// emulated device also finds races between threads and reads of what nobody wrote.
//
// QUERN_RANDOM_SEED=n runs that graph alone and prints it; QUERN_LONG_TESTS=n runs n times as many.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "device/emulated/emulated_device.h"
#include "unit/compiler/random_case.h"
#include "unit/device/device_run.h"
#include "unit/device/has_no_blocks.h"

namespace quern::testing {
namespace {

// The first graphs of every slice of tests/unit/compiler/random_graph_test.cc; eight times as many are all of them.
constexpr uint64_t kGraphs = 256, kSlices = 8;

class RandomBlocks : public ::testing::TestWithParam<uint64_t> {
 protected:
  void Check(uint64_t seed) {
    StatusOr<Case> made = MakeCase(seed, /*on_cpu=*/false);
    ASSERT_TRUE(made.ok()) << "seed " << seed << ": " << made.status();
    const Status evaluated = MakeOracles(*made);
    ASSERT_TRUE(evaluated.ok()) << "seed " << seed << ": " << evaluated;
    for (const bool fuse : {true, false}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, fuse ? ", fused" : ", not fused"));
      compiler::PipelineOptions options;
      options.fuse = fuse;
      options.facts.blocks.emplace();
      options.facts.blocks->half_products = false;  // whose error is another one
      const StatusOr<CompiledGraph> graph = PlanGraph(made->random.graph, made->guard, options);
      if (absl::IsUnimplemented(graph.status()) && HasNoBlocks(made->meaning)) {
        ++refused_;
        continue;
      }
      ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << ir::Print(made->random.graph);
      for (Trial& trial : made->trials) {
        SCOPED_TRACE(absl::StrCat("B ", trial.binding.at("B"), ", S ", trial.binding.at("S")));
        CheckTrial(*graph, trial, *made);
      }
    }
  }

  int64_t elements_ = 0, kernels_ = 0, refused_ = 0;

 private:
  void CheckTrial(const CompiledGraph& graph, Trial& trial, const Case& test) {
    const auto got = RunOnDevice(graph, device::emulated::MakeDevice(1), nullptr, trial.binding, trial.bytes);
    ASSERT_TRUE(got.ok()) << got.status() << "\n" << ir::Print(test.random.graph);
    for (size_t o = 0; o < got->size(); ++o) {
      const ir::RefTensor& expected = trial.oracle->expected()[o];
      const auto values = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*got)[o]);
      ASSERT_TRUE(values.ok()) << values.status();
      const std::string difference = trial.oracle->WorstText(static_cast<int>(o), *values);
      EXPECT_EQ(difference, "") << ir::Print(test.random.graph);
      elements_ += expected.elements();
      if (difference.empty() || !print_) continue;
      for (const kir::Kernel& kernel : graph.plan.kernels) std::printf("%s\n", kir::Print(kernel).c_str());
    }
    kernels_ += static_cast<int64_t>(graph.plan.launches.size());
  }

  const bool print_ = std::getenv("QUERN_RANDOM_SEED") != nullptr;
};

TEST_P(RandomBlocks, MeanTheSame) {
  if (const uint64_t seed = FromEnvironment("QUERN_RANDOM_SEED", 0); seed != 0) {
    if (GetParam() != 0) GTEST_SKIP() << "one seed";
    std::printf("%s", ir::Print(MakeCase(seed, false)->meaning).c_str());
    return Check(seed);
  }
  const uint64_t graphs = kGraphs / kSlices * FromEnvironment("QUERN_LONG_TESTS", 1);
  for (uint64_t i = 0; i < graphs && !HasFatalFailure(); ++i) Check(SeedOf(GetParam(), i));
  std::printf("%d graphs from seed %d, %d launches, %d elements, %d plans refused\n", static_cast<int>(graphs),
              static_cast<int>(SeedOf(GetParam(), 0)), static_cast<int>(kernels_), static_cast<int>(elements_),
              static_cast<int>(refused_));
}

INSTANTIATE_TEST_SUITE_P(Slice, RandomBlocks, ::testing::Range(uint64_t{0}, kSlices));

}  // namespace
}  // namespace quern::testing
