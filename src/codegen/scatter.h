// The kernel of a write to places that are data; internal to the family of updates.
#pragma once

#include "codegen/kernel_writer.h"

namespace quern::codegen {

// Stores what `node`, an op with a ScatterDef, writes to `buffer`, which has operand 0 already.
void EmitScatter(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const ir::Node& node,
                 const std::string& buffer);

}  // namespace quern::codegen
