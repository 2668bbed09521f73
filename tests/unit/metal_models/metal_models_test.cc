// Whole programs from their Metal text, run on the CPU (support/msl_shim): a small graph beside the JIT, random graphs
// beside the double interpreter, and every kernel of the bundled model in each format of weights beside the interpreter
// of KIR.
#include "absl/strings/str_cat.h"
#include "codegen/metal/emit_metal.h"
#include "support/metal_kernel.h"
#include "support/shim_device.h"
#include "unit/device/device_models.h"

namespace quern {
namespace {

TEST(MetalModels, StepsAreThoseOfTheJit) { testing::ExpectStepsOfTheJit(MakeShimDevice(), metal::Targets()[0]); }

TEST(MetalModels, RandomGraphsMeanTheSame) {
  testing::ExpectRandomGraphs(64, [](uint64_t) { return MakeShimDevice(); }, metal::Targets()[0], /*has_f64=*/false);
}

// QUERN_KERNEL_SEED=n draws other memory.
TEST(MetalModels, KernelsOfTheBundledModelMeanTheSame) {
  const uint64_t seed = 100003 * testing::FromEnvironment("QUERN_KERNEL_SEED", 1);
  std::set<std::string> seen;
  testing::ForEachModelKernel(
      metal::Targets(), seen, [&](const codegen::DeviceTarget&, const std::vector<testing::SizedKernel>& kernels) {
        std::vector<MetalCase> cases;
        for (const testing::SizedKernel& sized : kernels) {
          MetalCase test{
              .kernel = sized.kernel, .seed = seed + seen.size() + cases.size(), .max_chunks = 2, .tolerance = 1e-4};
          test.binding = sized.sizes;
          cases.push_back(std::move(test));
        }
        const Status same = CheckKernelsThroughMetal(cases);
        EXPECT_TRUE(same.ok()) << same.message();
      });
}

}  // namespace
}  // namespace quern
