// Random kernels through the C compiler. Seeds are printed; QUERN_SEED and QUERN_KERNELS ask for others and for more.
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "support/c_kernel.h"
#include "unit/codegen_c/random_kernel.h"

namespace quern {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void CheckSeeds(uint64_t first, uint64_t count, const kir::RandomKernelOptions& options, double tolerance) {
  constexpr int64_t kRows[] = {1, 2, 5, 13};
  SCOPED_TRACE(absl::StrCat("seeds from ", first));
  std::vector<CKernelCase> cases;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    cases.push_back({.kernel = kir::RandomKernel(seed, options),
                     .binding = {{"M", kRows[seed % 4]}},
                     .seed = seed,
                     .max_chunks = 1 << 20,
                     .tolerance = tolerance});
  }
  const Status status = CheckKernelsThroughC(cases);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(RandomKernel, EqualsTheInterpreterInDouble) {
  CheckSeeds(FromEnvironment("QUERN_SEED", 1), FromEnvironment("QUERN_KERNELS", 30), {}, /*tolerance=*/0);
}

TEST(RandomKernel, IsNearTheInterpreterInFloat) {
  CheckSeeds(FromEnvironment("QUERN_SEED", 1001), FromEnvironment("QUERN_KERNELS", 15), {.depth = 3, .smooth = true},
             1e-4);
}

}  // namespace
}  // namespace quern
