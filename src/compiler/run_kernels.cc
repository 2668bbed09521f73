// RunKernels of the public interface: kernels in text, held to the interpreter and timed.

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "base/generated_code.h"
#include "base/mapped_file.h"
#include "base/memory.h"
#include "base/stopwatch.h"
#include "compiler/public_error.h"
#include "compiler/runtime_options.h"
#include "kir/cost.h"
#include "kir/interpret.h"
#include "kir/random_buffer.h"
#include "quern/kernel.h"
#include "runtime/float_mode.h"

namespace quern {
namespace {

constexpr int64_t kUsualSize = 8, kMostBytes = int64_t{1} << 32, kMostChecked = 4096;
// Steps of the interpreter, some 50 ns each, that a check may take.
constexpr double kMostSteps = 2e7;
constexpr int kWarmUpRuns = 3;

std::vector<uint8_t> Copied(const Memory& memory) { return {memory.bytes().begin(), memory.bytes().end()}; }

QUERN_CALLS_GENERATED_CODE void Call(quern_kernel* function, const quern_args& args, void* scratch, int64_t begin,
                                     int64_t end) {
  const FlushDenormals flush;
  function(&args, scratch, begin, end);
}

StatusOr<Binding> SizesOf(const kir::Kernel& kernel, const KernelOptions& options) {
  Binding binding;
  std::vector<std::string_view> names;
  for (const kir::SymbolDecl& symbol : kernel.symbols) {
    if (symbol.derived) continue;
    names.emplace_back(symbol.name);
    const auto given = options.sizes.find(symbol.name);
    binding[symbol.name] =
        given != options.sizes.end() ? given->second : std::clamp(kUsualSize, symbol.range.low, symbol.range.high);
    if (binding[symbol.name] >= symbol.range.low && binding[symbol.name] <= symbol.range.high) continue;
    return ToStatus({DiagnosticCode::kOutOfRange, "", absl::StrCat("symbol ", symbol.name),
                     absl::StrCat(symbol.range.low, "..", symbol.range.high), absl::StrCat(binding[symbol.name]),
                     kernel.name});
  }
  for (const auto& [name, size] : options.sizes) {
    if (!binding.contains(name)) return UnknownName("symbol", name, names, kernel.name);
  }
  return kir::BindSymbols(kernel, binding);
}

// One kernel with the memory that it runs on.
struct Run {
  const kir::Kernel& kernel;
  Binding binding;
  std::vector<Memory> buffers;
  int64_t scratch_bytes = 0;
  KernelRun result;

  Status Prepare(const KernelOptions& options) {
    QUERN_RETURN_IF_ERROR(kir::Verify(kernel));
    QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernel));
    if (shape.threads > 0) {
      return ToStatus({DiagnosticCode::kUnsupported, "", "", "", "a kernel for blocks of threads", kernel.name});
    }
    QUERN_ASSIGN(binding, SizesOf(kernel, options));
    result.kernel = kernel.name;
    result.sizes.insert(binding.begin(), binding.end());
    QUERN_ASSIGN(result.chunks, kir::GridChunks(kernel, binding));
    QUERN_ASSIGN(scratch_bytes, kir::ScratchBytes(kernel, binding));
    QUERN_ASSIGN(const kir::KernelCost cost, kir::CostOf(kernel, binding));
    result.operations = cost.flops + cost.bf16_ops;
    result.int8_operations = cost.int8_ops;
    result.bytes = static_cast<double>(cost.read()) + static_cast<double>(cost.written());
    result.estimate = cost.estimate;
    int64_t left = kMostBytes;
    std::mt19937_64 random(options.seed);
    for (const kir::Param& param : kernel.params) {
      QUERN_ASSIGN(const int64_t bytes,
                   kir::LayoutBytes(param.type.layout, param.type.dtype, param.type.dims).Evaluate(binding));
      left -= std::min(bytes, kMostBytes + 1);
      if (left < 0 || bytes < 0) {
        return absl::ResourceExhaustedError(
            absl::StrFormat("kernel %s: its operands have more than %d bytes", kernel.name, kMostBytes));
      }
      QUERN_ASSIGN(const std::vector<uint8_t> drawn, kir::RandomBuffer(param.type, binding, random));
      QUERN_ASSIGN(buffers.emplace_back(), Memory::Allocate(static_cast<int64_t>(drawn.size())));
      std::copy(drawn.begin(), drawn.end(), buffers.back().data());
    }
    return absl::OkStatus();
  }

  // The interpreter's view of the same start, on as many chunks as it can run.
  Status Check(quern_kernel* function, const KernelOptions& options) {
    const double steps = result.operations + result.int8_operations + result.bytes;
    const double each = steps / static_cast<double>(std::max<int64_t>(result.chunks, 1));
    const int64_t most = std::clamp<int64_t>(static_cast<int64_t>(kMostSteps / std::max(each, 1.0)), 1, kMostChecked);
    std::mt19937_64 random(options.seed);
    const kir::ChunkRanges ranges =
        result.chunks == 0 ? kir::ChunkRanges() : kir::RandomChunks(result.chunks, most, random);
    std::vector<std::vector<uint8_t>> want;
    for (const Memory& buffer : buffers) want.push_back(Copied(buffer));
    const std::vector<std::vector<uint8_t>> start = want;
    const std::vector<kir::BufferBytes> spans(want.begin(), want.end());
    QUERN_ASSIGN(kir::Interpreter interpreter, kir::Interpreter::Create(kernel, binding));
    QUERN_ASSIGN(const Memory scratch, Memory::Allocate(scratch_bytes));
    const Arguments arguments(*this);
    for (const auto& [begin, end] : ranges) {
      QUERN_RETURN_IF_ERROR(interpreter.Run(spans, begin, end));
      Call(function, arguments.args, scratch.data(), begin, end);
      result.checked += end - begin;
    }
    for (size_t p = 0; p < kernel.params.size(); ++p) {
      const std::vector<uint8_t> got = Copied(buffers[p]);
      std::string difference = kernel.params[p].mode == kir::Mode::kIn
                                   ? (got == start[p] ? "" : " has changed, an operand")
                                   : kir::FirstDifference(kernel.params[p].type, got, want[p], options.tolerance);
      if (difference.empty()) continue;
      result.difference = absl::StrCat(kernel.params[p].name, difference);
      break;
    }
    return absl::OkStatus();
  }

  Status Time(quern_kernel* function, ThreadPool& pool, const KernelOptions& options) {
    const Arguments arguments(*this);
    std::vector<Memory> memory(pool.threads());
    std::vector<void*> scratch;
    for (Memory& own : memory) {
      QUERN_ASSIGN(own, Memory::Allocate(scratch_bytes));
      scratch.push_back(own.data());
    }
    const Dispatch dispatch = {function, &arguments.args, result.chunks, kernel.sequential, nullptr, 0};
    const auto time = [&](int64_t runs) {
      const Stopwatch watch;
      for (int64_t r = 0; r < runs; ++r) pool.Run({&dispatch, 1}, scratch);
      return watch.Nanoseconds() / static_cast<double>(runs);
    };
    double once = 0;
    for (int r = 0; r < kWarmUpRuns; ++r) once = time(1);
    const int64_t runs = std::max<int64_t>(1, static_cast<int64_t>(options.sample_ms * 1e6 / std::max(once, 1.0)));
    std::vector<double> times;
    for (int s = 0; s < options.samples; ++s) times.push_back(time(runs));
    std::sort(times.begin(), times.end());
    const auto quantile = [&](double q) {
      return times[static_cast<size_t>(q * static_cast<double>(times.size() - 1) + 0.5)];
    };
    result.median_ns = quantile(0.5);
    result.first_quartile_ns = quantile(0.25);
    result.third_quartile_ns = quantile(0.75);
    result.least_ns = times.front();
    return absl::OkStatus();
  }

  struct Arguments {
    explicit Arguments(const Run& run) {
      for (const Memory& buffer : run.buffers) pointers.push_back(buffer.data());
      for (const kir::SymbolDecl& symbol : run.kernel.symbols) values.push_back(run.binding.at(symbol.name));
      args = {pointers.data(), values.data()};
    }
    std::vector<void*> pointers;
    std::vector<int64_t> values;
    quern_args args;
  };
};

StatusOr<std::vector<KernelRun>> RunAll(const std::string& path, const Options& given, const KernelOptions& options) {
  Options machine = given;
  if (machine.threads == 0) machine.threads = 1;
  QUERN_ASSIGN(const MappedFile file, MappedFile::Open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  StatusOr<std::vector<kir::Kernel>> parsed = kir::ParseKernels(text);
  if (!parsed.ok())
    return WithMessage(parsed.status(), absl::StrCat(path, ": ", std::string(parsed.status().message())));
  std::vector<kir::Kernel> kernels = *std::move(parsed);
  if (kernels.empty()) return absl::InvalidArgumentError(path + ": there is no kernel in it");
  std::vector<std::string_view> names;
  for (const kir::Kernel& kernel : kernels) names.emplace_back(kernel.name);
  if (!options.kernel.empty()) {
    if (std::find(names.begin(), names.end(), options.kernel) == names.end())
      return UnknownName("kernel", options.kernel, names, path);
    std::erase_if(kernels, [&](const kir::Kernel& kernel) { return kernel.name != options.kernel; });
  }
  QUERN_ASSIGN(const std::shared_ptr<jit::Engine> engine, compiler::EngineOf(machine));
  QUERN_ASSIGN(const std::unique_ptr<ThreadPool> pool, ThreadPool::Create(machine.threads));
  std::vector<KernelRun> results;
  for (const kir::Kernel& kernel : kernels) {
    Run run{kernel, {}, {}, 0, {}};
    QUERN_RETURN_IF_ERROR(run.Prepare(options));
    QUERN_ASSIGN(const jit::Module module, engine->Compile({&kernel, 1}));
    run.result.level = engine->target().name;
    run.result.threads = pool->threads();
    QUERN_RETURN_IF_ERROR(run.Check(module.kernel(0), options));
    if (options.samples > 0) QUERN_RETURN_IF_ERROR(run.Time(module.kernel(0), *pool, options));
    results.push_back(std::move(run.result));
  }
  return results;
}

}  // namespace

Result<std::vector<KernelRun>> RunKernels(const std::string& path, const Options& options, const KernelOptions& run) {
  return compiler::ToResult(RunAll(path, options, run), path);
}

}  // namespace quern
