// The short pass list run on a kernel's module. Internal to codegen/cpu.
#pragma once

#include <memory>

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace quern::cpu {

// Always-inline, SROA, EarlyCSE, InstCombine, LICM, constants of loops (loop_constants.h), GlobalDCE: O2 and O3 gain
// nothing over it on kernels that are emitted as vectors, and cost two to three times as much. Set up once, run on many
// modules.
class Optimiser {
 public:
  explicit Optimiser(llvm::TargetMachine* machine);
  ~Optimiser();
  void Run(llvm::Module& module);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::cpu
