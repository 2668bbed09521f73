// The C header of a compiled model: plain C99, stand-alone, documented. Internal to aot.
#pragma once

#include <string>

#include "aot/model.h"
#include "aot/object_symbols.h"
#include "aot/workspace.h"

namespace quern::aot {

std::string Header(const Model& model, const Workspace& workspace, std::span<const ir::CustomDef* const> calls,
                   const ObjectSymbols& symbols_of, const Options& options);

}  // namespace quern::aot
