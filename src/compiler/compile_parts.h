// What compiling ahead of time needs of a model file, for processors and for devices. Internal to CompileModel.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "aot/model.h"
#include "compiler/model.h"
#include "quern/compile.h"

namespace quern::compiler {

// The model file as compiled models will be handed it.
aot::WeightFile WeightsOf(const std::string& path, const GgufFile& file);
// Every parameter, with its place in the file where it lies there at a multiple of lir::kParamAlign.
std::vector<aot::Param> ParamsOf(const models::ModelSpec& spec, const GgufFile& file);

// Error: the path that cannot be written.
Status WriteFile(const std::filesystem::path& path, const std::string& bytes);
// Makes it where it is not there. Error: why not.
Status MakeFolder(const std::string& folder);

// compile.cc for devices: `name` is the prefix of the files. Errors: those of CompileModel.
StatusOr<CompiledFiles> CompileDeviceFiles(const std::string& path, const std::string& name, const Options& options,
                                           const CompileOptions& compile);

}  // namespace quern::compiler
