// Ahead of time: a model file as a C library. Three files come out: NAME.o, NAME.h and NAME.json (docs/aot.md).
//
//   quern::Result<quern::CompiledFiles> files = quern::CompileModel("model.gguf", {}, {.folder = "out"});
//   if (!files.ok()) return Complain(files.error());
#pragma once

#include <string>
#include <vector>

#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

struct CompileOptions {
  std::string folder = ".";            // made when it is not there
  std::string name = {};               // prefix of files and functions, a C identifier; empty: from the model file's name
  std::vector<std::string> cpus = {};  // levels; the object takes the best that a machine has. Empty: Options::cpu alone
  bool embed_weights = false;          // the model file goes into the object
  std::string emit = "obj";            // obj, or instead of it the text of: asm, llvm, kir
};

struct CompiledFiles {
  std::string object;                  // paths; `object` is the text where one was asked for
  std::string header, manifest;        // empty for kir
};

// Compiles every variant of the model for every level; this machine need not have them. Of `options`, cpu, exact and context
// count. Errors: those of opening the model; a name that is no identifier; a file that cannot be written.
Result<CompiledFiles> CompileModel(const std::string& path, const Options& options, const CompileOptions& compile);

}  // namespace quern
