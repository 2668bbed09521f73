// Random kernels at every level. Seeds are printed; QUERN_SEED and QUERN_KERNELS ask for others and for more.
#include <cstdlib>

#include "jit_support.h"
#include "kir/share.h"
#include "support/environment.h"
#include "unit/codegen_c/random_kernel.h"

namespace quern::jit_test {
namespace {

std::vector<Case> Cases(const std::vector<kir::Kernel>& kernels, uint64_t first) {
  constexpr int64_t kRows[] = {1, 2, 5, 13};
  std::vector<Case> cases;
  for (size_t i = 0; i < kernels.size(); ++i) {
    Rng rng(first + i);
    Case test{
        .kernel = &kernels[i], .symbols = {{"M", kRows[i % 4]}}, .buffers = {}, .tolerance = {2e-4, 2e-4}, .each = {}};
    test.buffers = MakeBuffers(kernels[i], test.symbols);
    FillInputs(kernels[i], test.buffers, {.range = 2}, rng);
    cases.push_back(std::move(test));
  }
  return cases;
}

// Functions that keep a small error small: the values are compared.
TEST(RandomKernels, AgreeWithTheInterpreter) {
  const uint64_t first = testing::FromEnvironment("QUERN_SEED", 5001),
                 count = testing::FromEnvironment("QUERN_KERNELS", 20);
  SCOPED_TRACE(absl::StrFormat("seeds from %d", first));
  std::vector<kir::Kernel> kernels;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    kernels.push_back(kir::RandomKernel(seed, {.depth = 3, .smooth = true}));
    if (seed % 2 == 0) kernels.back() = kir::ShareValues(std::move(kernels.back()));
  }
  CheckCases(Cases(kernels, first));
}

// All operators and dtypes in any mixture: a rounding may turn into any difference, so what is checked is that every
// level compiles them, stays inside its buffers and gives the same bits for any split of the chunks.
TEST(RandomKernels, CompileAndStayInBounds) {
  const uint64_t first = testing::FromEnvironment("QUERN_SEED", 9001),
                 count = testing::FromEnvironment("QUERN_KERNELS", 8);
  SCOPED_TRACE(absl::StrFormat("seeds from %d", first));
  std::vector<kir::Kernel> kernels;
  for (uint64_t seed = first; seed < first + count; ++seed) kernels.push_back(kir::RandomKernel(seed));
  const std::vector<Case> cases = Cases(kernels, first);
  for (const cpu::Target* target : cpu::HostTargets()) {
    auto engine = MakeEngine(*target);
    ASSERT_NE(engine, nullptr);
    auto module = engine->Compile(kernels);
    ASSERT_TRUE(module.ok()) << module.status();
    for (size_t i = 0; i < cases.size(); ++i) {
      std::vector<Memory> whole = cases[i].buffers, split = cases[i].buffers;
      RunCompiled(module->kernel(i), kernels[i], cases[i].symbols, whole);
      RunCompiled(module->kernel(i), kernels[i], cases[i].symbols, split, 3);
      for (size_t p = 0; p < whole.size(); ++p) {
        EXPECT_EQ(std::memcmp(whole[p].data(), split[p].data(), whole[p].size()), 0) << "seed " << first + i;
      }
    }
  }
}

}  // namespace
}  // namespace quern::jit_test
