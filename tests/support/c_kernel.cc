#include "support/c_kernel.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "codegen/c/emit_c.h"
#include "kir/interpret.h"
#include "kir/random_buffer.h"
#include "support/guarded_buffer.h"

namespace quern {
namespace {

double ToleranceOf(DType dtype, double tolerance) {
  if (dtype == DType::kF16) return tolerance + 0x1p-10;
  return dtype == DType::kBF16 ? tolerance + 0x1p-7 : tolerance;
}

// Runs one case: the interpreter once, then each function on memory of its own.
Status RunCase(const CKernelCase& test, quern_kernel* wide, quern_kernel* narrow) {
  const std::string where = absl::StrFormat("kernel %s, seed %d", test.kernel.name, test.seed);
  auto fail = [&](const std::string& message) { return absl::InternalError(absl::StrCat(where, ", ", message)); };
  std::mt19937_64 random(test.seed);
  QUERN_ASSIGN(const Binding binding, kir::BindSymbols(test.kernel, test.binding));
  QUERN_ASSIGN(const int64_t chunks, kir::GridChunks(test.kernel, test.binding));
  QUERN_ASSIGN(const int64_t scratch_bytes, kir::ScratchBytes(test.kernel, test.binding));
  std::vector<std::vector<uint8_t>> initial;
  for (const kir::Param& param : test.kernel.params) {
    QUERN_ASSIGN(std::vector<uint8_t> bytes, kir::RandomBuffer(param.type, binding, random));
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
  for (const bool is_wide : {true, false}) {
    if (!is_wide && test.tolerance == 0) continue;
    quern_kernel* const run = is_wide ? wide : narrow;
    if (run == nullptr) return fail("no function");
    std::vector<GuardedBuffer> buffers;
    std::vector<void*> pointers;
    for (const std::vector<uint8_t>& bytes : initial) {
      buffers.emplace_back(bytes);
      pointers.push_back(buffers.back().data());
    }
    const quern_args args = {pointers.data(), symbols.data()};
    for (const auto& [begin, end] : ranges) {
      GuardedBuffer scratch(std::vector<uint8_t>(scratch_bytes, 0xFF));
      run(&args, scratch.data(), begin, end);
      if (!scratch.Intact()) return fail("writes outside its scratch");
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      const kir::Param& param = test.kernel.params[i];
      if (!buffers[i].Intact()) return fail(absl::StrCat("writes outside ", param.name));
      const double tolerance = is_wide ? 0 : ToleranceOf(param.type.dtype, test.tolerance);
      const std::string difference = kir::FirstDifference(param.type, buffers[i].Bytes(), expected[i], tolerance);
      if (!difference.empty())
        return fail(absl::StrCat(is_wide ? "in double, " : "in float, ", param.name, difference));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<CLibrary> CLibrary::Compile(const std::vector<std::string>& sources) {
  // Calls to these are kept: a compiler may give them another last bit, or make one of another.
  QUERN_ASSIGN(SharedObjects objects,
               SharedObjects::Compile(
                   sources,
                   {QUERN_C_COMPILER, "-std=c11", "-O0", "-shared", "-fPIC", "-ffp-contract=off", "-fno-builtin-pow",
                    "-fno-builtin-powf", "-fno-builtin-exp2", "-fno-builtin-exp2f", "-Werror=return-type",
                    "-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types"},
                   ".c", {"-lm"}));
  return CLibrary(std::move(objects));
}

Status CheckKernelsThroughC(std::span<const CKernelCase> cases) {
  // One source in double, one in float of those that are compared so.
  std::vector<c::NamedKernel> wide, narrow;
  for (size_t i = 0; i < cases.size(); ++i) {
    wide.push_back({cases[i].emitted ? &*cases[i].emitted : &cases[i].kernel, absl::StrCat("kernel_", i)});
    if (cases[i].tolerance != 0) narrow.push_back(wide.back());
  }
  std::vector<std::string> sources(2);
  QUERN_ASSIGN(sources[0], c::EmitC(wide, {.wide = true}));
  QUERN_ASSIGN(sources[1], c::EmitC(narrow, {.wide = false}));
  QUERN_ASSIGN(const CLibrary library, CLibrary::Compile(sources));
  for (size_t i = 0; i < cases.size(); ++i) {
    QUERN_RETURN_IF_ERROR(RunCase(cases[i], library.Find(0, wide[i].symbol), library.Find(1, wide[i].symbol)));
  }
  return absl::OkStatus();
}

Status CheckKernelThroughC(const kir::Kernel& kernel, const Binding& binding, uint64_t seed) {
  const CKernelCase test{.kernel = kernel, .binding = binding, .seed = seed};
  return CheckKernelsThroughC({&test, 1});
}

}  // namespace quern
