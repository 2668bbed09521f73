// The C header of a compiled model: plain C99, stand-alone, documented. Internal to aot.
#pragma once

#include <string>

#include "aot/model.h"
#include "aot/workspace.h"

namespace quern::aot {

std::string Header(const Model& model, const Workspace& workspace, std::span<const ir::CustomDef* const> calls,
                   const Options& options);

}  // namespace quern::aot
