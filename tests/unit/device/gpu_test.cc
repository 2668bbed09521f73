// The PTX of each level on a real device, which a driver of NVIDIA's compiles: a small graph beside the JIT and the
// emulated device, random graphs beside the double interpreter, and every kernel of the bundled model in each format of
// weights, and products in large squares, beside the interpreter of KIR. Skipped, with the reason, where there is no
// such device, or where it does not run the level.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/block_schedule.h"
#include "codegen/ptx/emit_ptx.h"
#include "compiler/device_run.h"
#include "kir/interpret.h"
#include "kir/random_buffer.h"
#include "support/block_kernels.h"
#include "unit/device/device_models.h"

namespace quern {
namespace {

// A test for each row of the table of targets.
class Gpu : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    Options options;
    options.device = "cuda";
    options.cpu = target().cpu;
    StatusOr<compiler::OpenedDevice> opened = compiler::OpenDevice(options);
    if (!opened.ok()) GTEST_SKIP() << opened.status().message();
    device_ = opened->device;
  }

  const codegen::DeviceTarget& target() const { return ptx::Targets()[GetParam()]; }

  // All chunks of the kernel, loaded as `function`, on random memory. Interpreted, which is slow, are the first, the
  // last and one between: what these write is compared.
  void CheckKernel(const kir::Kernel& kernel, uint64_t function, const Binding& sizes, uint64_t seed) {
    SCOPED_TRACE(absl::StrCat(kernel.name, ", seed ", seed));
    std::mt19937_64 random(seed);
    const StatusOr<Binding> binding = kir::BindSymbols(kernel, sizes);
    ASSERT_TRUE(binding.ok()) << binding.status();
    const int64_t chunks = *kir::GridChunks(kernel, sizes);
    std::vector<std::vector<uint8_t>> memory;
    std::vector<device::Address> pointers;
    for (const kir::Param& param : kernel.params) {
      memory.push_back(*kir::RandomBuffer(param.type, *binding, random));
      const auto bytes = static_cast<int64_t>(memory.back().size());
      pointers.push_back(*device_->Allocate(std::max<int64_t>(bytes, 1)));
      ASSERT_EQ(device_->CopyIn(pointers.back(), memory.back().data(), bytes), absl::OkStatus());
    }
    const std::vector<std::vector<uint8_t>> initial = memory;
    std::vector<std::vector<uint8_t>> expected = memory;
    std::vector<int64_t> symbols;
    for (const kir::SymbolDecl& symbol : kernel.symbols) symbols.push_back(binding->at(symbol.name));
    ASSERT_EQ(device_->Launch({function, chunks, pointers, symbols}), absl::OkStatus());
    for (size_t p = 0; p < memory.size(); ++p) {
      const auto bytes = static_cast<int64_t>(memory[p].size());
      ASSERT_EQ(device_->CopyOut(memory[p].data(), pointers[p], bytes), absl::OkStatus());
    }
    ASSERT_EQ(device_->Synchronise(), absl::OkStatus());
    for (const device::Address pointer : pointers) ASSERT_EQ(device_->Free(pointer), absl::OkStatus());

    std::vector<kir::BufferBytes> spans(expected.begin(), expected.end());
    StatusOr<kir::Interpreter> interpreter = kir::Interpreter::Create(kernel, sizes);
    ASSERT_TRUE(interpreter.ok()) << interpreter.status();
    for (const auto& [begin, end] : kir::RandomChunks(chunks, 2, random))
      ASSERT_EQ(interpreter->Run(spans, begin, end), absl::OkStatus());
    for (size_t p = 0; p < memory.size(); ++p) {
      const kir::BufferType& type = kernel.params[p].type;
      const auto element = static_cast<size_t>(Row(type.dtype).block_bytes);
      for (size_t at = 0; at < expected[p].size(); at += element) {
        const auto first = static_cast<ptrdiff_t>(at), end = static_cast<ptrdiff_t>(at + element);
        if (std::equal(expected[p].begin() + first, expected[p].begin() + end, initial[p].begin() + first))
          std::copy(memory[p].begin() + first, memory[p].begin() + end, expected[p].begin() + first);
      }
      const double tolerance = 1e-4 + (type.dtype == DType::kF16 ? 0x1p-10 : type.dtype == DType::kBF16 ? 0x1p-7 : 0);
      EXPECT_EQ(kir::FirstDifference(type, memory[p], expected[p], tolerance), "") << kernel.params[p].name;
    }
  }

  void CheckKernels(const std::vector<testing::SizedKernel>& sized, uint64_t seed) {
    std::vector<kir::Kernel> kernels;
    std::vector<std::string> symbols;
    for (const testing::SizedKernel& each : sized) {
      symbols.push_back(absl::StrCat("kernel_", kernels.size()));
      kernels.push_back(each.kernel);
    }
    const StatusOr<codegen::DeviceModule> made = target().emit(kernels, symbols, target());
    ASSERT_TRUE(made.ok()) << made.status();
    device::ModuleSource source{.text = made->text, .entries = {}, .kernels = {}};
    for (const codegen::DeviceKernel& kernel : made->kernels) source.entries.push_back({kernel.symbol, kernel.threads});
    const StatusOr<device::LoadedModule> loaded = device_->Load(source);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    for (size_t k = 0; k < kernels.size(); ++k)
      ASSERT_NO_FATAL_FAILURE(CheckKernel(kernels[k], loaded->functions[k], sized[k].sizes, seed + k));
    ASSERT_EQ(device_->Unload(loaded->module), absl::OkStatus());
  }

  std::shared_ptr<device::Device> device_;
};

TEST_P(Gpu, StepsAreThoseOfTheJit) { testing::ExpectStepsOfTheJit(device_, target()); }

TEST_P(Gpu, StepsAreThoseOfTheEmulatedDevice) {
  testing::DeviceGraph graph;
  ASSERT_NO_FATAL_FAILURE(testing::PlanForDevice(testing::kSmallGraph, testing::SmallGuards(), graph));
  const auto program = testing::MakeLoadable(SignatureOf(graph.prepared), graph.plans, &target());
  ASSERT_TRUE(program.ok()) << program.status();
  auto executor = device::Executor::Create(device_, SignatureOf(graph.prepared), device::VariantsOf(*program));
  ASSERT_TRUE(executor.ok()) << executor.status();
  auto emulated = device::Executor::Create(device::emulated::MakeDevice(1), SignatureOf(graph.prepared),
                                           device::VariantsOf(*program));
  ASSERT_TRUE(emulated.ok()) << emulated.status();
  ASSERT_TRUE(testing::BindSmall(**executor).ok());
  ASSERT_TRUE(testing::BindSmall(**emulated).ok());
  int64_t past = 0;
  for (const int64_t rows : {3, 1, 1, 1, 5, 1, 1}) {
    const auto got = testing::StepSmall(**executor, past, rows), expected = testing::StepSmall(**emulated, past, rows);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_NO_FATAL_FAILURE(testing::ExpectClose(*got, *expected, 1e-4));
    past += rows;
  }
}

TEST_P(Gpu, RandomGraphsMeanTheSame) {
  testing::ExpectRandomGraphs(64, [&](uint64_t) { return device_; }, target(), /*has_f64=*/true);
}

TEST_P(Gpu, KernelsOfTheBundledModelMeanTheSame) {
  std::set<std::string> seen;
  testing::ForEachModelKernel({&target(), 1}, seen,
                              [&](const codegen::DeviceTarget&, const std::vector<testing::SizedKernel>& kernels) {
                                CheckKernels(kernels, 100003 + seen.size());
                              });
}

// Squares of 128, by warps or by two groups of warps.
TEST_P(Gpu, LargeProductsMeanTheSame) {
  family::BlockFacts facts = target().facts;
  facts.large_product = 131;
  std::vector<testing::SizedKernel> kernels;
  for (const char* dtype : {"f16", "bf16"}) {
    const StatusOr<kir::Kernel> plain = kir::ParseKernel(absl::StrReplaceAll(R"(kernel product (a : HALF[131, 72] in
          b : HALF[139, 72] in
          c : f32[131, 139] out
        ) {
          grid i in 0..131, j in 0..139 { c[i, j] = sum for k in 0..72 { cast<f32>(a[i, k]) * cast<f32>(b[j, k]) } }
        })",
                                                                             {{"HALF", dtype}}));
    ASSERT_TRUE(plain.ok()) << plain.status();
    const StatusOr<kir::Kernel> scheduled = codegen::ScheduleBlocks(*plain, facts);
    ASSERT_TRUE(scheduled.ok()) << scheduled.status();
    kernels.push_back({*scheduled, {}});
  }
  if (facts.group_products) kernels.push_back({*Scheduled(GroupProduct(), facts), {}});
  CheckKernels(kernels, 7);
}

INSTANTIATE_TEST_SUITE_P(Levels, Gpu, ::testing::Range(size_t{0}, ptx::Targets().size()),
                         [](const auto& row) { return std::string(ptx::Targets()[row.param].cpu); });

}  // namespace
}  // namespace quern
