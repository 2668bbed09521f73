// The steps of a plan as code: which of its dispatches run, in which order. Internal to aot.
//
// A plan of launches alone is one call of quern_model_run. Branches and loops are blocks of the step function: a bool
// is read where the plan has it, and what loops carry are pointers that their trips exchange in the dispatches' tables.
#pragma once

#include "aot/fill.h"
#include "aot/ir_writer.h"

namespace quern::aot {

// Appends to the writer's block, and leaves it where all steps are done; `open`: what EmitFill left. The function
// returns an i32, a code of quern/abi.h, from within where a step fails.
Status EmitSteps(IrWriter& w, const FillContext& context, const lir::Plan& plan, const LoopSlots& open);

}  // namespace quern::aot
