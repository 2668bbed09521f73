// Constants of loops that stay in memory where registers are few. Internal to codegen/cpu.
#pragma once

#include "llvm/IR/PassManager.h"

namespace quern::cpu {

// With 16 vector registers a loop of mathematical functions has more constants than these. The code generator takes all
// of them out of the loop, and then moves them between registers in every round, a third of its instructions. Where an
// innermost loop has many, its instructions read them from memory instead, as the operands that they may have there.
// Nothing of values changes. The last pass over a module: others would take the loads out of the loop again.
struct LoopConstantsPass : llvm::PassInfoMixin<LoopConstantsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace quern::cpu
