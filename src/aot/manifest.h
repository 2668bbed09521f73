// What is in the object file, for tools: JSON. Internal to aot.
#pragma once

#include <string>
#include <vector>

#include "aot/kernel_table.h"
#include "aot/model.h"
#include "aot/object_symbols.h"
#include "aot/workspace.h"

namespace quern::aot {

// `tiles`: names by level; `symbols_of`: of the object. Error: Internal, a parameter without data.
StatusOr<std::string> Manifest(const Model& model, const Workspace& workspace, const std::vector<KernelTable>& kernels,
                               const std::vector<std::vector<std::string>>& tiles, const std::string& object,
                               const ObjectSymbols& symbols_of, const Options& options);

}  // namespace quern::aot
