// The steps of a plan as code: which of its dispatches run, in which order. Internal to aot.
//
// A plan of launches alone is one call of quern_model_run. Branches and loops are blocks of the step function: a bool
// is read where the plan has it, and what loops carry are pointers that their trips exchange in the dispatches' tables.
// Where a size is found, it is read and checked, and the dispatches that name it are written.
#pragma once

#include <span>

#include "aot/fill.h"
#include "aot/ir_writer.h"

namespace quern::aot {

// Appends to the writer's block, and leaves it where all steps are done. The function returns an i32, a code of
// quern/abi.h, from within where a step fails. Found sizes become the values of `context`, and are stored in `table`,
// that of all values.
Status EmitSteps(IrWriter& w, FillContext& context, llvm::Value* table, const lir::Plan& plan, Filler& filler);

// Returns from the function where sizes do not go together.
Status EmitRequirements(IrWriter& w, const FillContext& context, std::span<const lir::Requirement> requirements);

}  // namespace quern::aot
