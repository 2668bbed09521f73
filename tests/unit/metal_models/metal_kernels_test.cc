// Every kernel of whole models through the Metal text, on the CPU, held to the KIR interpreter: the bundled model once for each
// format of weights, planned as a session plans it.
//
// QUERN_KERNEL_SEED=n draws other memory and sizes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/metal/emit_metal.h"
#include "compiler/model.h"
#include "support/metal_kernel.h"
#include "support/model_weights.h"

namespace quern {
namespace {

uint64_t Seed() {
  const char* const text = std::getenv("QUERN_KERNEL_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

TEST(MetalKernels, OfTheBundledModelMeanTheSame) {
  const auto model = compiler::OpenModel(QUERN_SOURCE_DIR "/models/addition.gguf", {.exact = true});
  ASSERT_TRUE(model.ok()) << model.status();
  std::set<std::string> seen;
  for (const DType format : {DType::kF16, DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    SCOPED_TRACE(Row(format).name);
    const auto weighed = WithWeights(model->spec.module, format);
    ASSERT_TRUE(weighed.ok()) << weighed.status();
    compiler::PipelineOptions options;
    options.exact = true;
    options.facts.blocks = metal::Targets()[0].facts;
    const auto graph = compiler::PrepareGraph(*weighed, options);
    ASSERT_TRUE(graph.ok()) << graph.status();
    std::vector<MetalCase> cases;
    for (const SymbolRanges& guard : compiler::StepGuards()) {
      const auto planned = compiler::PlanVariant(*graph, guard, options);
      ASSERT_TRUE(planned.ok()) << planned.status();
      for (const kir::Kernel& kernel : planned->plan.kernels) {
        if (!seen.insert(kir::Print(kernel, {.origins = false, .normalise_names = true})).second) continue;
        MetalCase test{.kernel = kernel, .seed = Seed() * 100003 + seen.size(), .max_chunks = 2, .tolerance = 1e-4};
        const StatusOr<Binding> sizes = SizesFor(planned->plan, test.seed);
        ASSERT_TRUE(sizes.ok()) << sizes.status();
        test.binding = *sizes;
        cases.push_back(std::move(test));
      }
    }
    const Status same = CheckKernelsThroughMetal(cases);
    EXPECT_TRUE(same.ok()) << same.message();
  }
  std::printf("%d distinct kernels\n", static_cast<int>(seen.size()));
}

}  // namespace
}  // namespace quern
