// From kernels to object code: emit, link, optimise, generate.
#include "codegen/cpu/object.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>

#include "codegen/cpu/emitter.h"
#include "codegen/cpu/link_bitcode.h"
#include "codegen/cpu/optimise.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "simd/library.h"

namespace quern::cpu {
namespace {

constexpr std::array kLibc = {"atan", "atan2", "cos",  "erf",  "exp",    "exp2", "fmod", "fmodf",
                              "log",  "log2",  "pow",  "sin",  "tan",    "tanh", "memcpy", "memset"};

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const Target& target, bool optimise) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  const simd::Level* level = simd::FindLevel(target.name);
  if (level == nullptr) return absl::InternalError(absl::StrFormat("no SIMD functions were built for %s", target.name));
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  std::string error;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (llvm_target == nullptr) return absl::InternalError("code generator: " + error);
  llvm::TargetOptions options;
  options.EnableFastISel = false;
  // Contraction happens where the instructions allow it, nowhere else.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  std::unique_ptr<llvm::TargetMachine> machine(llvm_target->createTargetMachine(
      triple, llvm::StringRef(level->target_cpu.data(), level->target_cpu.size()),
      llvm::StringRef(level->target_features.data(), level->target_features.size()), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, optimise ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None));
  if (machine == nullptr) return absl::InternalError("code generator: no target machine for " + triple);
  return machine;
}

StatusOr<std::string> Generate(llvm::TargetMachine& machine, llvm::Module& module, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) {
    return absl::InternalError("code generator: cannot write this kind of file");
  }
  passes.run(module);
  return std::string(buffer.data(), buffer.size());
}

std::string Text(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace

bool IsLibcSymbol(std::string_view name) {
  return std::find(kLibc.begin(), kLibc.end(), name) != kLibc.end();
}

struct ObjectCompiler::State {
  const Target& target;
  EmitOptions options;
  StatusOr<std::unique_ptr<llvm::TargetMachine>> machine;
  std::unique_ptr<Optimiser> optimiser;
};

ObjectCompiler::ObjectCompiler(const Target& target, const EmitOptions& options)
    : state_(new State{target, options, MakeMachine(target, options.optimise), nullptr}) {
  if (state_->machine.ok()) state_->optimiser = std::make_unique<Optimiser>(state_->machine->get());
}
ObjectCompiler::~ObjectCompiler() = default;

StatusOr<Object> ObjectCompiler::Compile(std::span<const kir::Kernel> kernels, std::span<const std::string> symbols) {
  if (!state_->machine.ok()) return state_->machine.status();
  if (kernels.size() != symbols.size()) return absl::InternalError("one symbol a kernel");
  llvm::TargetMachine& machine = **state_->machine;
  const EmitOptions& options = state_->options;
  Object object;
  object.symbols.assign(symbols.begin(), symbols.end());
  object.stats.resize(kernels.size());

  const int64_t start = Now();
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple().str());
  for (size_t i = 0; i < kernels.size(); ++i) {
    Emitter emitter(module, state_->target, options, object.stats[i]);
    QUERN_RETURN_IF_ERROR(emitter.EmitKernel(kernels[i], symbols[i]));
  }
  if (options.dump_ir) object.ir_before = Text(module);
  const int64_t emitted = Now();

  QUERN_RETURN_IF_ERROR(LinkBitcode(module, state_->target, options.specialise));
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems)) return absl::InternalError("emitted module: " + problem);
  const int64_t linked = Now();

  state_->optimiser->Run(module);
  if (options.dump_ir) object.ir_after = Text(module);
  for (const llvm::Function& function : module) {
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty()) {
      object.undefined.push_back(function.getName().str());
    }
  }
  const int64_t optimised = Now();

  if (options.dump_assembly) {
    // The code generator changes the module: assembly is made from a copy.
    QUERN_ASSIGN(object.assembly, Generate(machine, *llvm::CloneModule(module), llvm::CodeGenFileType::AssemblyFile));
  }
  const int64_t dumped = Now();
  QUERN_ASSIGN(object.bytes, Generate(machine, module, llvm::CodeGenFileType::ObjectFile));
  object.times = {emitted - start, linked - emitted, optimised - linked, Now() - dumped};
  return object;
}

}  // namespace quern::cpu
