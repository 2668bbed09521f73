// From kernels to PTX text: emit all into one module, optimise, generate.
#include <array>
#include <map>

#include "absl/strings/str_cat.h"
#include "codegen/copy_runs.h"
#include "codegen/ptx/emit_ptx.h"
#include "codegen/ptx/emitter.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace quern::ptx {
namespace {

constexpr int64_t kRunBytes = 16;  // that a thread loads or stores at once

StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const codegen::DeviceTarget& target) {
  static const bool initialised = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialised;
  const char* const triple = "nvptx64-nvidia-cuda";
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (found == nullptr) return absl::UnavailableError(absl::StrCat("LLVM without NVPTX: ", error));
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(triple, target.cpu, target.features, {}, std::nullopt,
                                                                         std::nullopt, llvm::CodeGenOptLevel::Default));
}

void Optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // A thread has no vectors: two iterations as one would meet in memory of its own, where elements are taken out of them.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.LoopInterleaving = tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

// Of barriers that nothing to do with memory lies between one is left: what made the others necessary is gone.
void JoinBarriers(llvm::Module& module) {
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      bool again = false;
      for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
        const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        const bool barrier = call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::nvvm_barrier0;
        if (barrier && again) instruction.eraseFromParent();
        else if (barrier || instruction.mayReadOrWriteMemory()) again = barrier;
      }
    }
  }
}

// Of each function, what is left of its allocs.
std::map<std::string, int64_t> SharedBytes(const llvm::Module& module) {
  std::map<std::string, int64_t> bytes;
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (global.getAddressSpace() != 3) continue;
    // Every user lies in the one function that the alloc was made for.
    const llvm::User* user = nullptr;
    for (const llvm::Value* value = &global; !value->use_empty(); value = user) {
      user = *value->user_begin();
      if (llvm::isa<llvm::Instruction>(user)) break;
    }
    const auto* instruction = llvm::dyn_cast_or_null<llvm::Instruction>(user);
    if (instruction == nullptr) continue;
    const auto size = static_cast<int64_t>(module.getDataLayout().getTypeAllocSize(global.getValueType()));
    bytes[instruction->getFunction()->getName().str()] += (size + 127) / 128 * 128;
  }
  return bytes;
}

StatusOr<codegen::DeviceModule> EmitPtx(std::span<const kir::Kernel> kernels, std::span<const std::string> symbols,
                                        const codegen::DeviceTarget& target) {
  QUERN_ASSIGN(const std::unique_ptr<llvm::TargetMachine> machine, MakeMachine(target));
  llvm::LLVMContext context;
  llvm::Module module("quern", context);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
  codegen::DeviceModule made;
  MathLibrary math;
  for (size_t i = 0; i < kernels.size(); ++i) {
    QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernels[i]));
    if (shape.threads == 0) {
      return absl::InvalidArgumentError(absl::StrFormat("kernel %s is not scheduled for blocks of threads", kernels[i].name));
    }
    const kir::Kernel kernel = codegen::WriteOutCopies(kernels[i], shape.threads, kRunBytes);
    QUERN_RETURN_IF_ERROR(Emitter(kernel, module, math, shape.threads, target.facts.group_products).Run(symbols[i]));
    made.kernels.push_back({.symbol = symbols[i], .threads = shape.threads});
  }
  std::string error;
  llvm::raw_string_ostream errors(error);
  if (llvm::verifyModule(module, &errors)) return absl::InternalError(absl::StrCat("PTX of ", kernels[0].name, ": ", error));
  Optimise(module, *machine);
  JoinBarriers(module);
  const std::map<std::string, int64_t> shared = SharedBytes(module);
  for (codegen::DeviceKernel& kernel : made.kernels) {
    if (const auto found = shared.find(kernel.symbol); found != shared.end()) kernel.shared_bytes = found->second;
  }
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    return absl::InternalError("LLVM cannot write PTX");
  }
  passes.run(module);
  made.text = text.str().str();
  return made;
}

constexpr std::array<codegen::DeviceTarget, 3> kTargets = {{
    {"nvptx64", "sm_80", "+ptx70", "ptx", {}, EmitPtx},
    {"nvptx64", "sm_90", "+ptx80", "ptx", {}, EmitPtx},
    {"nvptx64", "sm_90a", "+ptx80", "ptx", {.group_products = true}, EmitPtx},
}};

}  // namespace

std::span<const codegen::DeviceTarget> Targets() { return kTargets; }

}  // namespace quern::ptx
