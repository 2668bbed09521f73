// What is in the object file, for tools: JSON. Internal to aot.
#pragma once

#include <string>
#include <vector>

#include "aot/kernel_table.h"
#include "aot/model.h"
#include "aot/workspace.h"

namespace quern::aot {

// `tiles`: names by level. Errors: an object that cannot be read back.
StatusOr<std::string> Manifest(const Model& model, const Workspace& workspace, const std::vector<KernelTable>& kernels,
                               const std::vector<std::vector<std::string>>& tiles, const std::string& object,
                               const Options& options);

}  // namespace quern::aot
