// From kernels to PTX text: emit, optimise and generate each by itself, on all processors, then join the texts.
#include <array>
#include <atomic>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/threads.h"
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
#include "quern/rt.h"

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
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.cpu, target.features, {}, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Default));
}

void Optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // A thread has no vectors: two iterations as one would meet in memory of its own, where elements are taken out of
  // them.
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
        if (barrier && again)
          instruction.eraseFromParent();
        else if (barrier || instruction.mayReadOrWriteMemory())
          again = barrier;
      }
    }
  }
}

// What is left of the allocs of a module's one entry.
int64_t SharedBytes(llvm::Module& module) {
  int64_t bytes = 0;
  for (llvm::GlobalVariable& global : module.globals()) {
    global.removeDeadConstantUsers();
    if (global.getAddressSpace() != 3 || global.use_empty()) continue;
    const auto size = static_cast<int64_t>(module.getDataLayout().getTypeAllocSize(global.getValueType()));
    bytes += (size + 127) / 128 * 128;
  }
  return bytes;
}

struct Written {
  codegen::DeviceKernel kernel;
  std::string text;
};

StatusOr<Written> EmitEntry(const kir::Kernel& kernel, const std::string& symbol, const codegen::DeviceTarget& target,
                            llvm::TargetMachine& machine, MathLibrary& math) {
  QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernel));
  if (shape.threads == 0) {
    return absl::InvalidArgumentError(absl::StrFormat("kernel %s is not scheduled for blocks of threads", kernel.name));
  }
  llvm::LLVMContext context;
  llvm::Module module("quern", context);
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  const kir::Kernel written = codegen::WriteOutCopies(kernel, shape.threads, kRunBytes);
  QUERN_RETURN_IF_ERROR(Emitter(written, module, math, shape.threads, target.facts.group_products).Run(symbol));
  std::string error;
  llvm::raw_string_ostream errors(error);
  if (llvm::verifyModule(module, &errors))
    return absl::InternalError(absl::StrCat("PTX of ", kernel.name, ": ", error));
  Optimise(module, machine);
  JoinBarriers(module);
  const int64_t shared_bytes = SharedBytes(module);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    return absl::InternalError("LLVM cannot write PTX");
  }
  passes.run(module);
  return Written{{symbol, shape.threads, shared_bytes}, text.str().str()};
}

// Adds the text of an entry. A table that several read, as that of a block format, is defined by the first of them:
// `tables` are the lines which do.
void AddEntry(std::string_view entry, std::set<std::string, std::less<>>& tables, std::string& text) {
  while (!entry.empty()) {
    const std::string_view line = entry.substr(0, std::min(entry.find('\n'), entry.size() - 1) + 1);
    entry.remove_prefix(line.size());
    if (!line.starts_with(".global ") || tables.emplace(line).second) text.append(line);
  }
}

// The text depends on the kernels and their order alone, not on which thread wrote what.
StatusOr<codegen::DeviceModule> EmitPtx(std::span<const kir::Kernel> kernels, std::span<const std::string> symbols,
                                        const codegen::DeviceTarget& target) {
  std::vector<StatusOr<Written>> written(kernels.size(), absl::CancelledError());
  std::atomic<size_t> next = 0;
  const auto work = [&](int) {
    const StatusOr<std::unique_ptr<llvm::TargetMachine>> machine = MakeMachine(target);
    MathLibrary math;
    for (size_t i = next++; i < kernels.size(); i = next++) {
      written[i] = machine.ok() ? EmitEntry(kernels[i], symbols[i], target, **machine, math)
                                : StatusOr<Written>(machine.status());
    }
  };
  RunOnThreads(static_cast<int>(std::min<int64_t>(kernels.size(), quern_thread_count())), work);
  codegen::DeviceModule made;
  std::set<std::string, std::less<>> tables;
  for (const StatusOr<Written>& entry : written) {
    QUERN_RETURN_IF_ERROR(entry.status());
    made.kernels.push_back(entry->kernel);
    // One head for all: version, target, size of addresses.
    constexpr std::string_view kHead = ".address_size 64\n";
    const size_t body = made.text.empty() ? 0 : entry->text.find(kHead) + kHead.size();
    AddEntry(std::string_view(entry->text).substr(body), tables, made.text);
  }
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
