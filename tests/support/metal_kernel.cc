#include "support/metal_kernel.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "codegen/metal/emit_metal.h"
#include "kir/interpret.h"
#include "kir/random_buffer.h"
#include "support/guarded_buffer.h"
#include "support/msl_check.h"

namespace quern {
namespace {

// A function of the kernel ABI for each kernel of the text, in the text's own translation unit.
std::string Wrappers(const codegen::DeviceModule& module, std::span<const kir::Kernel> kernels) {
  std::string text =
      "\nextern \"C\" {\nint* quern_shim_order() { return &quern_shim_descending(); }\n"
      "void quern_shim_release() { quern_shim::Release(); }\n";
  for (size_t i = 0; i < kernels.size(); ++i) {
    const codegen::DeviceKernel& made = module.kernels[i];
    std::string arguments;
    for (size_t p = 0; p < kernels[i].params.size(); ++p) {
      absl::StrAppend(&arguments, "quern_shim::Pointer{args->buffers[", p, "]}, ");
    }
    if (!kernels[i].symbols.empty()) absl::StrAppend(&arguments, "quern_shim::Pointer{args->symbols}, ");
    absl::StrAppend(&text, "void quern_run_", i, "(const quern_args* args, void*, int64_t begin, int64_t end) {\n",
                    "  for (int64_t group = begin; group < end; ++group) {\n    quern_shim::RunThreads(", made.threads,
                    ", [&](int number) { ", made.symbol, "(", arguments, "uint(group), uint(number)); });\n  }\n}\n");
  }
  return text + "}\n";
}

double ToleranceOf(DType dtype, double tolerance) {
  if (dtype == DType::kF16) return tolerance + 0x1p-10;
  return dtype == DType::kBF16 ? tolerance + 0x1p-7 : tolerance;
}

// The interpreter once, then threads in both orders, on memory of their own.
Status RunCase(const MetalCase& test, quern_kernel* run, const MetalLibrary& library) {
  std::string order;
  auto fail = [&](const std::string& message) {
    return absl::InternalError(absl::StrCat("kernel ", test.kernel.name, ", seed ", test.seed, order, ", ", message));
  };
  std::mt19937_64 random(test.seed);
  QUERN_ASSIGN(const Binding binding, kir::BindSymbols(test.kernel, test.binding));
  QUERN_ASSIGN(const int64_t chunks, kir::GridChunks(test.kernel, test.binding));
  std::vector<std::vector<uint8_t>> initial;
  for (const kir::Param& param : test.kernel.params) {
    QUERN_ASSIGN(std::vector<uint8_t> bytes, kir::RandomBuffer(param.type, binding, random));
    if (initial.size() < test.inputs.size()) bytes = test.inputs[initial.size()];
    initial.push_back(std::move(bytes));
  }
  const kir::ChunkRanges ranges = kir::RandomChunks(chunks, test.max_chunks, random);
  std::vector<std::vector<uint8_t>> expected = initial;
  std::vector<kir::BufferBytes> spans;
  for (std::vector<uint8_t>& bytes : expected) spans.emplace_back(bytes);
  QUERN_ASSIGN(kir::Interpreter interpreter, kir::Interpreter::Create(test.kernel, test.binding));
  for (const auto& [begin, end] : ranges) {
    if (Status ran = interpreter.Run(spans, begin, end); !ran.ok()) return fail(std::string(ran.message()));
  }
  std::vector<int64_t> symbols;
  for (const kir::SymbolDecl& symbol : test.kernel.symbols) symbols.push_back(binding.at(symbol.name));
  for (const bool descending : {false, true}) {
    order = descending ? ", from the last thread" : "";
    library.SetDescending(descending);
    std::vector<GuardedBuffer> buffers;
    std::vector<void*> pointers;
    for (const std::vector<uint8_t>& bytes : initial) {
      buffers.emplace_back(bytes);
      pointers.push_back(buffers.back().data());
    }
    const quern_args args = {pointers.data(), symbols.data()};
    for (const auto& [begin, end] : ranges) run(&args, nullptr, begin, end);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const kir::Param& param = test.kernel.params[i];
      if (!buffers[i].Intact()) return fail(absl::StrCat("writes outside ", param.name));
      const double tolerance = test.tolerance == 0 ? 0 : ToleranceOf(param.type.dtype, test.tolerance);
      const std::string difference =
          kir::FirstDifference(param.type, buffers[i].Bytes(), expected[i], tolerance, test.each);
      if (!difference.empty()) return fail(absl::StrCat(param.name, difference));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<MetalLibrary> MetalLibrary::Compile(const codegen::DeviceModule& module,
                                             std::span<const kir::Kernel> kernels) {
  QUERN_RETURN_IF_ERROR(CheckMsl(module.text));
  QUERN_RETURN_IF_ERROR(CompileMslSpaces(module.text));
  QUERN_ASSIGN(
      SharedObjects objects,
      SharedObjects::Compile({module.text + Wrappers(module, kernels)},
                             {QUERN_CLANG, "-std=c++17", "-x", "c++", "-O0", "-shared", "-fPIC", "-fsigned-char",
                              "-march=native", "-fno-exceptions", "-fno-rtti", "-fno-math-errno",
                              "-Wno-unknown-attributes", "-Wno-unknown-pragmas", absl::StrCat("-I", QUERN_SHIM_DIR)},
                             ".metal"));
  MetalLibrary library(std::move(objects));
  for (size_t i = 0; i < kernels.size(); ++i)
    library.kernels_.push_back(library.objects_.FindKernel(0, absl::StrCat("quern_run_", i)));
  const auto release = reinterpret_cast<void (*)()>(library.objects_.Find(0, "quern_shim_release"));
  library.fibers_ = std::shared_ptr<void>(nullptr, [release](void*) { release(); });
  library.descending_ = reinterpret_cast<int* (*)()>(library.objects_.Find(0, "quern_shim_order"));
  return library;
}

StatusOr<MetalLibrary> MetalLibrary::Compile(std::span<const kir::Kernel> kernels) {
  std::vector<std::string> symbols;
  for (size_t i = 0; i < kernels.size(); ++i) symbols.push_back(absl::StrCat("kernel_", i));
  const codegen::DeviceTarget& target = metal::Targets()[0];
  QUERN_ASSIGN(const codegen::DeviceModule module, target.emit(kernels, symbols, target));
  return Compile(module, kernels);
}

StatusOr<MetalLibrary> CompileMetal(const lir::Plan& plan) { return MetalLibrary::Compile(plan.kernels); }

Status CheckKernelsThroughMetal(std::span<const MetalCase> cases) {
  std::vector<kir::Kernel> kernels;
  for (const MetalCase& test : cases) kernels.push_back(test.kernel);
  QUERN_ASSIGN(const MetalLibrary library, MetalLibrary::Compile(kernels));
  return CheckKernelsThroughMetal(cases, library);
}

Status CheckKernelsThroughMetal(std::span<const MetalCase> cases, const MetalLibrary& library) {
  for (size_t i = 0; i < cases.size(); ++i) QUERN_RETURN_IF_ERROR(RunCase(cases[i], library.kernels()[i], library));
  return absl::OkStatus();
}

}  // namespace quern
