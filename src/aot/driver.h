// The driver of a compiled model: the functions of its header, as LLVM IR. Internal to aot.
//
// For each variant a straight line of stores writes the step's dispatches into the workspace (level.h): no table is
// walked and nothing is interpreted. What does not depend on the model is C (support/support.c), linked in as internal
// functions.
//
//   i32 @addition_step(self, inputs, outputs, i64 LOGITS, i64 PAST_SEQ, i64 SEQ)
//   i32 @chosen_step(self, inputs, outputs, i64 S, i64* N)    N: a size that the step finds, or null
#pragma once

#include <memory>
#include <vector>

#include "aot/kernel_table.h"
#include "aot/model.h"
#include "aot/workspace.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace quern::aot {

// The module declares the kernels; only the functions of the header, and they, are external.
StatusOr<std::unique_ptr<llvm::Module>> EmitDriver(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                                   const Model& model, const std::vector<KernelTable>& kernels,
                                                   const Workspace& workspace, bool embed_weights);

}  // namespace quern::aot
