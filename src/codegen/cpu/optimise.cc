#include "codegen/cpu/optimise.h"

#include "codegen/cpu/loop_constants.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace quern::cpu {

struct Optimiser::State {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  llvm::ModulePassManager passes;

  explicit State(llvm::TargetMachine* machine) : builder(machine) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    passes.addPass(llvm::AlwaysInlinerPass());
    llvm::FunctionPassManager list;
    list.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    list.addPass(llvm::EarlyCSEPass(true));
    list.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setMaxIterations(1).setVerifyFixpoint(false)));
    list.addPass(llvm::SimplifyCFGPass());
    list.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
    list.addPass(llvm::EarlyCSEPass());
    list.addPass(LoopConstantsPass());
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(list)));
    passes.addPass(llvm::GlobalDCEPass());
  }
};

Optimiser::Optimiser(llvm::TargetMachine* machine) : state_(std::make_unique<State>(machine)) {}
Optimiser::~Optimiser() = default;

void Optimiser::Run(llvm::Module& module) {
  state_->passes.run(module, state_->modules);
  state_->modules.clear();
  state_->components.clear();
  state_->functions.clear();
  state_->loops.clear();
}

}  // namespace quern::cpu
