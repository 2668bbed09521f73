// Whole programs from their PTX, run on the CPU (support/ptx_machine.h): a small graph beside the JIT, random graphs beside the double
// interpreter, and every kernel of the bundled model in each format of weights beside the emulated device.
//
// QUERN_RANDOM_SEED=n runs that graph alone and prints it; QUERN_LONG_TESTS=n runs n times as many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/block_schedule.h"
#include "codegen/ptx/emit_ptx.h"
#include "compiler/model.h"
#include "kir/interpret.h"
#include "support/block_kernels.h"
#include "support/kernel_buffers.h"
#include "support/model_weights.h"
#include "support/ptx_device.h"
#include "support/ptx_machine.h"
#include "unit/compiler/random_case.h"
#include "unit/device/device_graph.h"
#include "unit/device/device_run.h"

namespace quern {
namespace {

using testing::DeviceGraph;

TEST(PtxModels, StepsAreThoseOfTheJit) {
  DeviceGraph graph;
  ASSERT_NO_FATAL_FAILURE(testing::PlanForDevice(testing::kSmallGraph, testing::SmallGuards(), graph));
  const auto program = testing::MakeLoadable(SignatureOf(graph.prepared), graph.plans, &ptx::Targets()[0]);
  ASSERT_TRUE(program.ok()) << program.status();
  auto executor = device::Executor::Create(ptx::MakeDevice(), SignatureOf(graph.prepared), device::VariantsOf(*program));
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

// Those of tests/unit/compiler/random_graph_test.cc, 64-bit floats too.
TEST(PtxModels, RandomGraphsMeanTheSame) {
  const uint64_t only = testing::FromEnvironment("QUERN_RANDOM_SEED", 0);
  const uint64_t graphs = 128 * testing::FromEnvironment("QUERN_LONG_TESTS", 1);
  int64_t elements = 0, launches = 0;
  for (uint64_t i = 0; i < graphs; ++i) {
    const uint64_t seed = only != 0 ? only : testing::SeedOf(i % 8, i / 8);
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    StatusOr<testing::Case> made = testing::MakeCase(seed, /*quantises=*/false);
    ASSERT_TRUE(made.ok()) << made.status();
    const Status evaluated = testing::MakeOracles(*made);
    ASSERT_TRUE(evaluated.ok()) << evaluated;
    compiler::PipelineOptions options;
    options.fuse = i % 4 != 3;
    options.facts.blocks = ptx::Targets()[0].facts;
    options.facts.blocks->half_products = false;  // whose error is another one
    const StatusOr<testing::CompiledGraph> graph = testing::PlanGraph(made->random.graph, made->guard, options);
    ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << ir::Print(made->random.graph);
    if (only != 0) {
      for (const kir::Kernel& kernel : graph->plan.kernels) std::printf("%s\n", kir::Print(kernel).c_str());
    }
    testing::Trial& trial = made->trials.back();
    const auto got = testing::RunOnDevice(*graph, ptx::MakeDevice(/*descending=*/i % 2 == 1), &ptx::Targets()[0], trial.binding, trial.bytes);
    EXPECT_TRUE(got.ok()) << got.status() << "\n" << ir::Print(made->random.graph);
    for (size_t o = 0; got.ok() && o < got->size(); ++o) {
      const ir::RefTensor& expected = trial.oracle->expected()[o];
      const auto values = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*got)[o]);
      ASSERT_TRUE(values.ok()) << values.status();
      EXPECT_EQ(trial.oracle->WorstText(static_cast<int>(o), *values), "") << ir::Print(made->random.graph);
      elements += expected.elements();
    }
    launches += static_cast<int64_t>(graph->plan.launches.size());
    if (only != 0) break;
  }
  std::printf("%d graphs, %d launches, %d elements\n", static_cast<int>(graphs), static_cast<int>(launches), static_cast<int>(elements));
}

// The entry on random buffers, threads in both orders, beside the interpreter, for the first, the last and a chunk between.
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
    for (const kir::SymbolDecl& symbol : kernel.symbols) arguments.push_back(static_cast<uint64_t>(binding->at(symbol.name)));
    for (const auto& [begin, end] : ranges) ASSERT_EQ(entry.Run({begin, end, descending}, arguments, pieces), absl::OkStatus());
    for (size_t p = 0; p < pieces.size(); ++p) {
      const kir::BufferType& type = kernel.params[p].type;
      const double tolerance = 1e-4 + (type.dtype == DType::kF16 ? 0x1p-10 : type.dtype == DType::kBF16 ? 0x1p-7 : 0);
      EXPECT_EQ(kir::FirstDifference(type, {pieces[p].data, pieces[p].data + pieces[p].bytes}, expected[p], tolerance), "") << kernel.params[p].name;
    }
  }
}

// The text of `kernels` for `target`, each run by CheckKernel.
void CheckKernels(const std::vector<kir::Kernel>& kernels, const std::vector<Binding>& sizes, const codegen::DeviceTarget& target, uint64_t seed) {
  std::vector<std::string> symbols;
  for (size_t k = 0; k < kernels.size(); ++k) symbols.push_back(absl::StrCat("kernel_", k));
  const StatusOr<codegen::DeviceModule> made = target.emit(kernels, symbols, target);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(absl::StrContains(made->text, ".local"));
  const StatusOr<ptx::PtxModule> module = ptx::PtxModule::Parse(made->text);
  ASSERT_TRUE(module.ok()) << module.status();
  for (size_t k = 0; k < kernels.size(); ++k) CheckKernel(kernels[k], *module->Find(symbols[k]), sizes[k], seed + k);
}

// On each machine those kernels that it has other schedules for than the ones before it.
TEST(PtxModels, KernelsOfTheBundledModelMeanTheSame) {
  const auto model = compiler::OpenModel(QUERN_SOURCE_DIR "/models/addition.gguf", {.exact = true});
  ASSERT_TRUE(model.ok()) << model.status();
  std::set<std::string> seen;
  for (const DType format : {DType::kF16, DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    const auto weighed = WithWeights(model->spec.module, format);
    ASSERT_TRUE(weighed.ok()) << weighed.status();
    for (const codegen::DeviceTarget& target : ptx::Targets()) {
      SCOPED_TRACE(absl::StrCat(std::string(Row(format).name), ", ", target.cpu));
      compiler::PipelineOptions options;
      options.exact = true;
      options.facts.blocks = target.facts;
      const auto graph = compiler::PrepareGraph(*weighed, options);
      ASSERT_TRUE(graph.ok()) << graph.status();
      std::vector<kir::Kernel> kernels;
      std::vector<Binding> sizes;
      for (const SymbolRanges& guard : compiler::StepGuards()) {
        const auto planned = compiler::PlanVariant(*graph, guard, options);
        ASSERT_TRUE(planned.ok()) << planned.status();
        for (const kir::Kernel& kernel : planned->plan.kernels) {
          if (!seen.insert(kir::Print(kernel, {.origins = false, .normalise_names = true})).second) continue;
          const StatusOr<Binding> some = SizesFor(planned->plan, seen.size());
          ASSERT_TRUE(some.ok()) << some.status();
          kernels.push_back(kernel);
          sizes.push_back(*some);
        }
      }
      if (!kernels.empty()) CheckKernels(kernels, sizes, target, 100003 + seen.size());
    }
  }
  std::printf("%d distinct kernels\n", static_cast<int>(seen.size()));
}

// Squares of 128, by warps and by two groups of warps.
TEST(PtxModels, LargeProductsMeanTheSame) {
  for (const codegen::DeviceTarget& target : ptx::Targets()) {
    SCOPED_TRACE(target.cpu);
    codegen::BlockFacts facts = target.facts;
    facts.large_product = 131;
    std::vector<kir::Kernel> kernels;
    for (const char* dtype : {"f16", "bf16"}) {
      const StatusOr<kir::Kernel> plain = kir::ParseKernel(absl::StrReplaceAll(R"(kernel product (a : HALF[131, 72] in
          b : HALF[139, 72] in
          c : f32[131, 139] out
        ) { grid i in 0..131, j in 0..139 { c[i, j] = sum for k in 0..72 { cast<f32>(a[i, k]) * cast<f32>(b[j, k]) } } })", {{"HALF", dtype}}));
      ASSERT_TRUE(plain.ok()) << plain.status();
      const StatusOr<kir::Kernel> scheduled = codegen::ScheduleBlocks(*plain, facts);
      ASSERT_TRUE(scheduled.ok()) << scheduled.status();
      kernels.push_back(*scheduled);
    }
    // Shared memory that was stored outside of a pipeline is fenced, too.
    if (facts.group_products) kernels.push_back(*Scheduled(GroupProduct(), facts));
    CheckKernels(kernels, std::vector<Binding>(kernels.size()), target, 7);
  }
}

}  // namespace
}  // namespace quern
