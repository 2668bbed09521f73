// Ahead of time: a model file, or a graph, as a C library. Three files come out: NAME.o, NAME.h and NAME.json
// (docs/aot.md). For a device it is a text of kernels and what a host needs to run them: NAME.ptx or NAME.metal, and
// either's name with .json (docs/gpu.md).
//
//   quern::Result<quern::CompiledFiles> files = quern::CompileModel("model.gguf", {}, {.folder = "out"});
//   if (!files.ok()) return Complain(files.error());
//   files = quern::CompileGraph(graph, {}, {.folder = "out"});
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quern/graph.h"
#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

struct CompileOptions {
  std::string folder = ".";  // made when it is not there
  std::string name = {};    // prefix of files and functions, a C identifier; empty: from `file`, the model's or graph's
  std::string file = {};    // what the files are called, without .o, .h and .json; empty: as `name`
  std::string target = {};  // x86_64-linux-gnu or aarch64-linux-gnu; empty: this machine's. nvptx64, metal: for devices
  std::vector<std::string> cpus =
      {};  // levels of the target; the object takes the best that a machine has. Empty: Options::cpu
           // alone, or, where that is native and the target another machine's, its least level
  bool embed_weights = false;     // the model file goes into the object
  bool embed_vocabulary = false;  // of a language model, what quern/kit.h needs to make text of ids and ids of text
  std::string emit =
      "obj";  // obj: the three files, or a device's two. asm, llvm, bc (not of a device), kir: that one instead
  // The parameters go into a file of their own, which init is handed: FILE.weights. Without it those of a graph go into
  // the object, and those of a model stay where its file has them, which has to be one.
  bool pack_weights = false;
  // Called with what is done next ("optimising 48 kernels for avx2"), by the thread that compiles; may be empty.
  std::function<void(const std::string& what)> progress = {};
  std::string kernel = {};  // the symbol of one kernel (the manifest lists them): its code alone, NAME its symbol
};

struct CompiledFiles {
  std::string body;              // paths; what `emit` asked for
  std::string header, manifest;  // with the object of a whole model, else empty
  std::string weights;           // with `pack_weights`
};

// Compiles every variant of the model for every level; this machine need not have them. Of `options`, cpu, exact,
// invariant and context count. Errors: those of opening the model; a target or level that is not known; a name that is
// no identifier; an unknown kernel; a file that cannot be written.
Result<CompiledFiles> CompileModel(const std::string& path, const Options& options, const CompileOptions& compile);

// The same of a graph (quern/graph.h), with the variants that Graph::Compile would make. The bytes of its parameters,
// all of which it has, go into the object, and its outputs keep their names; a step takes the symbols, in the order of
// their names. Errors: that of the graph; kMissing, for a parameter without bytes; otherwise as above.
Result<CompiledFiles> CompileGraph(const Graph& graph, const Options& options, const CompileOptions& compile);

}  // namespace quern
