// What compiling ahead of time takes and writes, for processors and for devices. Internal to CompileModel and
// CompileGraph.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aot/model.h"
#include "compiler/model.h"
#include "quern/compile.h"

namespace quern::compiler {

// What is compiled.
struct CompileSource {
  const hir::Module* module = nullptr;
  std::vector<aot::Param> params = {};
  aot::WeightFile weights = {};
  std::optional<aot::Tokens> tokens = {};
  std::function<std::vector<SymbolRanges>(const ir::Graph& graph)> guards = {};
};

// Writes what `compile` asks for. `name`: of the files, where `compile` has none. Errors: those of CompileModel.
StatusOr<CompiledFiles> CompileFiles(const CompileSource& source, std::string_view name, const Options& options,
                                     const CompileOptions& compile);

// The signature of the prepared graph of a module; ports of c64, which are pairs in the graph, have their own type.
Signature SignatureOf(const hir::Module& module, const ir::Graph& graph);

// The model file as compiled models will be handed it. Error: Unimplemented, weights in more than one.
StatusOr<aot::WeightFile> WeightsOf(const ModelFile& file);
// Every parameter, with its place in the file where it lies there at a multiple of lir::kParamAlign.
std::vector<aot::Param> ParamsOf(const models::ModelSpec& spec, const ModelFile& file);

// Makes it where it is not there. Error: why not.
Status MakeFolder(const std::string& folder);

// compile.cc for devices: `name` is the prefix of the files. Errors: those of CompileModel.
StatusOr<CompiledFiles> CompileDeviceFiles(const CompileSource& source, const std::string& name, const Options& options,
                                           const CompileOptions& compile);

}  // namespace quern::compiler
