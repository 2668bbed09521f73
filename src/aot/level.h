// The part of the driver that belongs to one level: which variant a step takes, and the dispatches of each. Internal to
// aot.
//
//   i32 @step.avx2(self, inputs, outputs, values)    the first variant whose guard holds
//   i32 @step.avx2.0(self, inputs, outputs, values)  requirements; symbol tables, pointers, quern_args, dispatches;
//                                                    then its steps; writes the values of sizes that it finds
//   i64 @once.avx2(self, variant)                    dispatches of what depends on the weights alone
#pragma once

#include "aot/ir_writer.h"
#include "aot/kernel_table.h"
#include "aot/model.h"
#include "aot/workspace.h"

namespace quern::aot {

// A quern_level of support.h.
StatusOr<llvm::Constant*> EmitLevel(IrWriter& w, const Model& model, size_t level, const KernelTable& kernels,
                                    const Workspace& workspace);

}  // namespace quern::aot
