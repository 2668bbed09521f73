// From a kernel to PTX text: emit, optimise, generate.
#include <array>

#include "absl/strings/str_cat.h"
#include "codegen/ptx/emit_ptx.h"
#include "codegen/ptx/emitter.h"
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

constexpr std::array<PtxTarget, 2> kTargets = {{
    {"sm_80", "+ptx70", {}},
    {"sm_90", "+ptx80", {}},
}};

StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const PtxTarget& target) {
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
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(triple, target.name, target.features, {}, std::nullopt,
                                                                         std::nullopt, llvm::CodeGenOptLevel::Default));
}

void Optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

}  // namespace

std::span<const PtxTarget> PtxTargets() { return kTargets; }

const PtxTarget* FindPtxTarget(std::string_view name) {
  for (const PtxTarget& target : kTargets) {
    if (name == target.name) return &target;
  }
  return nullptr;
}

StatusOr<PtxKernel> EmitPtx(const kir::Kernel& kernel, const std::string& symbol, const PtxTarget& target) {
  QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernel));
  if (shape.threads == 0) {
    return absl::InvalidArgumentError(absl::StrFormat("kernel %s is not scheduled for blocks of threads", kernel.name));
  }
  QUERN_ASSIGN(const std::unique_ptr<llvm::TargetMachine> machine, MakeMachine(target));
  llvm::LLVMContext context;
  llvm::Module module(symbol, context);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
  QUERN_RETURN_IF_ERROR(Emitter(kernel, module, shape.threads).Run(symbol));
  std::string error;
  llvm::raw_string_ostream errors(error);
  if (llvm::verifyModule(module, &errors)) return absl::InternalError(absl::StrCat("kernel ", kernel.name, ": ", error));
  Optimise(module, *machine);
  PtxKernel made;
  made.threads = shape.threads;
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (global.getAddressSpace() != 3) continue;
    const auto bytes = static_cast<int64_t>(module.getDataLayout().getTypeAllocSize(global.getValueType()));
    made.shared_bytes += (bytes + 127) / 128 * 128;
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

}  // namespace quern::ptx
