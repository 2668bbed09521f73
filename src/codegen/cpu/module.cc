#include "codegen/cpu/module.h"

#include <mutex>

#include "base/ticks.h"
#include "codegen/cpu/emitter.h"
#include "codegen/cpu/link_bitcode.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Triple.h"
#include "simd/library.h"

namespace quern::cpu {
namespace {

// A code generator takes a millisecond to set up, so only what is asked for is.
void Initialise(llvm::Triple::ArchType arch) {
  static std::once_flag x86, arm;
  if (arch == llvm::Triple::x86_64) {
    std::call_once(x86, [] {
      LLVMInitializeX86TargetInfo();
      LLVMInitializeX86Target();
      LLVMInitializeX86TargetMC();
      LLVMInitializeX86AsmPrinter();
      LLVMInitializeX86AsmParser();
    });
  }
  if (arch == llvm::Triple::aarch64) {
    std::call_once(arm, [] {
      LLVMInitializeAArch64TargetInfo();
      LLVMInitializeAArch64Target();
      LLVMInitializeAArch64TargetMC();
      LLVMInitializeAArch64AsmPrinter();
      LLVMInitializeAArch64AsmParser();
    });
  }
}

}  // namespace

StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const Target& target, bool optimise) {
  const std::string triple = llvm::Triple::normalize(target.platform->triple);
  Initialise(llvm::Triple(triple).getArch());
  const simd::Level* level = simd::FindLevel(target.name);
  if (level == nullptr) return absl::InternalError(absl::StrFormat("no SIMD functions were built for %s", target.name));
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

StatusOr<std::unique_ptr<llvm::Module>> ModuleEmitter::Emit(llvm::LLVMContext& context,
                                                            std::span<const kir::Kernel> kernels,
                                                            std::span<const std::string> symbols,
                                                            ModuleReport& report) {
  if (kernels.size() != symbols.size()) return absl::InternalError("one symbol a kernel");
  report.stats.resize(kernels.size());
  const int64_t start = SteadyNs();
  auto module = std::make_unique<llvm::Module>("kernels", context);
  module->setDataLayout(machine_.createDataLayout());
  module->setTargetTriple(machine_.getTargetTriple().str());
  for (size_t i = 0; i < kernels.size(); ++i) {
    Emitter emitter(*module, target_, options_, report.stats[i]);
    QUERN_RETURN_IF_ERROR(emitter.EmitKernel(kernels[i], symbols[i]));
  }
  if (options_.dump_ir) report.ir_before = Text(*module);
  const int64_t emitted = SteadyNs();

  QUERN_RETURN_IF_ERROR(LinkBitcode(*module, target_, options_.specialise ? Link::kSpecialise : Link::kInline));
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(*module, &problems)) return absl::InternalError("emitted module: " + problem);
  const int64_t linked = SteadyNs();

  optimiser_.Run(*module);
  report.times.emit = emitted - start;
  report.times.link = linked - emitted;
  report.times.optimise = SteadyNs() - linked;
  return module;
}

Status ModuleEmitter::AddTiles(llvm::Module& module) { return LinkBitcode(module, target_, Link::kTiles); }

}  // namespace quern::cpu
