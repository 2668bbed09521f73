// Random kernels through the C compiler. Seeds are printed; QUERN_SEED and QUERN_KERNELS ask for others and for more.
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/c/emit_c.h"
#include "gtest/gtest.h"
#include "kir/canonical.h"
#include "kir/share.h"
#include "support/c_kernel.h"
#include "support/environment.h"
#include "unit/codegen_c/random_kernel.h"

namespace quern {
namespace {

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
  CheckSeeds(testing::FromEnvironment("QUERN_SEED", 1), testing::FromEnvironment("QUERN_KERNELS", 30), {},
             /*tolerance=*/0);
}

TEST(RandomKernel, IsNearTheInterpreterInFloat) {
  CheckSeeds(testing::FromEnvironment("QUERN_SEED", 1001), testing::FromEnvironment("QUERN_KERNELS", 15),
             {.depth = 3, .smooth = true}, 1e-4);
}

// With names for what is used several times.
TEST(RandomKernel, SharedValuesMeanTheSame) {
  const uint64_t first = testing::FromEnvironment("QUERN_SEED", 2001),
                 count = testing::FromEnvironment("QUERN_KERNELS", 30);
  SCOPED_TRACE(absl::StrCat("seeds from ", first));
  std::vector<CKernelCase> cases;
  size_t plain = 0, shared = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const kir::Kernel kernel = kir::RandomKernel(seed);
    const kir::Kernel named = kir::ShareValues(kernel);
    const StatusOr<kir::Kernel> again = kir::ParseKernel(kir::Print(named));
    ASSERT_TRUE(again.ok() && kir::Same(*again, named)) << "seed " << seed << "\n" << kir::Print(named);
    plain += kir::Print(kernel).size();
    shared += kir::Print(named).size();
    cases.push_back({.kernel = kernel,
                     .binding = {{"M", 5}},
                     .seed = seed,
                     .max_chunks = 1 << 20,
                     .tolerance = 0,
                     .emitted = named});
  }
  EXPECT_LT(shared, plain) << "nothing was shared";
  // What was proved before is proved again.
  uint64_t proved = 0;
  for (uint64_t seed = first; seed < first + 10 * count; ++seed) {
    const kir::Kernel kernel = kir::RandomKernel(seed, {.smooth = true});
    if (!kir::Verify(kernel).ok()) continue;
    ++proved;
    const Status verified = kir::Verify(kir::ShareValues(kernel));
    ASSERT_TRUE(verified.ok()) << verified << ", seed " << seed;
  }
  EXPECT_GT(proved, count);
  const Status status = CheckKernelsThroughC(cases);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SharedChain, IsEmittedInLinearTime) {
  const kir::Kernel kernel = kir::ShareValues(kir::ChainKernel(300));
  const StatusOr<std::string> text = c::EmitC(kernel);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_LT(text->size(), 80u * 600);
  const Status status = CheckKernelThroughC(kernel, {{"M", 5}}, 1);
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace quern
