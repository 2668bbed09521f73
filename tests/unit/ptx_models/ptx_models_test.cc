// Whole programs from their PTX, run on the CPU (support/ptx_machine.h): a small graph beside the JIT, random graphs
// beside the double interpreter, and every kernel of the bundled model in each format of weights beside the interpreter
// of KIR.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/block_schedule.h"
#include "codegen/ptx/emit_ptx.h"
#include "kir/interpret.h"
#include "kir/random_buffer.h"
#include "support/block_kernels.h"
#include "support/ptx_device.h"
#include "support/ptx_machine.h"
#include "unit/device/device_models.h"

namespace quern {
namespace {

TEST(PtxModels, StepsAreThoseOfTheJit) { testing::ExpectStepsOfTheJit(ptx::MakeDevice(), ptx::Targets()[0]); }

TEST(PtxModels, RandomGraphsMeanTheSame) {
  testing::ExpectRandomGraphs(
      128, [](uint64_t i) { return ptx::MakeDevice(/*descending=*/i % 2 == 1); }, ptx::Targets()[0], /*has_f64=*/true);
}

// The entry on random buffers, threads in both orders, beside the interpreter, for the first, the last and a chunk
// between.
void CheckKernel(const kir::Kernel& kernel, const ptx::PtxEntry& entry, const Binding& sizes, uint64_t seed) {
  SCOPED_TRACE(absl::StrCat(kernel.name, ", seed ", seed));
  std::mt19937_64 random(seed);
  const StatusOr<Binding> binding = kir::BindSymbols(kernel, sizes);
  ASSERT_TRUE(binding.ok()) << binding.status();
  const int64_t chunks = *kir::GridChunks(kernel, sizes);
  const kir::ChunkRanges ranges = kir::RandomChunks(chunks, 2, random);
  std::vector<std::vector<uint8_t>> initial;
  for (const kir::Param& param : kernel.params) initial.push_back(*kir::RandomBuffer(param.type, *binding, random));
  std::vector<std::vector<uint8_t>> expected = initial;
  std::vector<kir::BufferBytes> spans(expected.begin(), expected.end());
  StatusOr<kir::Interpreter> interpreter = kir::Interpreter::Create(kernel, sizes);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  for (const auto& [begin, end] : ranges) ASSERT_EQ(interpreter->Run(spans, begin, end), absl::OkStatus());
  for (const bool descending : {false, true}) {
    SCOPED_TRACE(descending ? "from the last thread" : "from the first thread");
    std::vector<std::vector<uint8_t>> memory;  // each with room to begin at a multiple of 256
    std::vector<uint64_t> arguments;
    std::vector<ptx::Piece> pieces;
    memory.reserve(initial.size());
    for (const std::vector<uint8_t>& bytes : initial) {
      memory.emplace_back(bytes.size() + 256);
      uint8_t* const start = memory.back().data() + (256 - reinterpret_cast<uint64_t>(memory.back().data()) % 256);
      std::copy(bytes.begin(), bytes.end(), start);
      arguments.push_back(reinterpret_cast<uint64_t>(start));
      pieces.push_back({start, bytes.size()});
    }
    for (const kir::SymbolDecl& symbol : kernel.symbols)
      arguments.push_back(static_cast<uint64_t>(binding->at(symbol.name)));
    for (const auto& [begin, end] : ranges)
      ASSERT_EQ(entry.Run({begin, end, descending}, arguments, pieces), absl::OkStatus());
    for (size_t p = 0; p < pieces.size(); ++p) {
      const kir::BufferType& type = kernel.params[p].type;
      const double tolerance = 1e-4 + (type.dtype == DType::kF16 ? 0x1p-10 : type.dtype == DType::kBF16 ? 0x1p-7 : 0);
      EXPECT_EQ(kir::FirstDifference(type, {pieces[p].data, pieces[p].data + pieces[p].bytes}, expected[p], tolerance),
                "")
          << kernel.params[p].name;
    }
  }
}

// The text of `kernels` for `target`, each run by CheckKernel.
void CheckKernels(const std::vector<testing::SizedKernel>& sized, const codegen::DeviceTarget& target, uint64_t seed) {
  std::vector<kir::Kernel> kernels;
  std::vector<std::string> symbols;
  for (const testing::SizedKernel& each : sized) {
    symbols.push_back(absl::StrCat("kernel_", kernels.size()));
    kernels.push_back(each.kernel);
  }
  const StatusOr<codegen::DeviceModule> made = target.emit(kernels, symbols, target);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(absl::StrContains(made->text, ".local"));
  const StatusOr<ptx::PtxModule> module = ptx::PtxModule::Parse(made->text);
  ASSERT_TRUE(module.ok()) << module.status();
  for (size_t k = 0; k < kernels.size(); ++k)
    CheckKernel(kernels[k], *module->Find(symbols[k]), sized[k].sizes, seed + k);
}

// On each machine those kernels that it has other schedules for than the ones before it.
TEST(PtxModels, KernelsOfTheBundledModelMeanTheSame) {
  std::set<std::string> seen;
  testing::ForEachModelKernel(
      ptx::Targets(), seen, [&](const codegen::DeviceTarget& target, const std::vector<testing::SizedKernel>& kernels) {
        CheckKernels(kernels, target, 100003 + seen.size());
      });
}

// Squares of 128, by warps and by two groups of warps.
TEST(PtxModels, LargeProductsMeanTheSame) {
  for (const codegen::DeviceTarget& target : ptx::Targets()) {
    SCOPED_TRACE(target.cpu);
    family::BlockFacts facts = target.facts;
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
    // Shared memory that was stored outside of a pipeline is fenced, too.
    if (facts.group_products) kernels.push_back({*Scheduled(GroupProduct(), facts), {}});
    CheckKernels(kernels, target, 7);
  }
}

}  // namespace
}  // namespace quern
