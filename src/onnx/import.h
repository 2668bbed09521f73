// From an ONNX model to a graph of ops (MIR). One ONNX op is one row of a table (importer.h).
//
// Sizes: a named dimension of an input is a symbol of the graph, an unnamed one a symbol of its own. What ONNX computes
// about sizes (Shape, Gather, Concat, Reshape ..) is followed in symbols (known.h). A size that only data gives is
// first a symbol of its own, which what the graph requires of sizes may solve ("RANGE_0 == P + T"); else, and where an
// op needs a number that is none, the import is done again with values of inputs or sizes that the caller gives
// (ImportOptions), and only those that were asked for become part of the graph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "import/tensor_file.h"
#include "ir/graph.h"
#include "onnx/model_file.h"

namespace quern::onnx {

struct ImportOptions {
  // May become part of the graph, where no op can do without.
  std::map<std::string, int64_t, std::less<>> sizes = {};  // by symbol
  FileTensors values = {};                                 // by input
  bool fix_sizes = false;                                  // no symbols: every size is one of these
  int64_t usual_size = 0;                                  // of symbols that neither of the two has; 0: there is none
};

struct Port {
  std::string name;   // in the model
  std::string input;  // of an input: that of the graph's
};

struct Imported {
  ir::Graph graph;
  std::map<std::string, std::span<const uint8_t>, std::less<>> params;  // the bytes of every Param
  std::vector<std::shared_ptr<const std::vector<uint8_t>>> owners;      // of those that are not the file's
  // What became part of the graph: it is for these alone.
  std::map<std::string, int64_t, std::less<>> fixed_sizes;
  std::set<std::string> fixed_inputs;
};

// The file must outlive the parameters' bytes. Errors, in a sentence with the op and the name of the node: those of ops
// that the model's are made of; Unimplemented for ops and types that there are none for; InvalidArgument.
StatusOr<Imported> Import(const ModelFile& file, const ImportOptions& options);

// A line for each kind of node that has no importer, and each type of a tensor that there is none for, with the name of
// the first; empty where everything is covered, as far as names say.
std::vector<std::string> NotCovered(const ModelFile& file);

}  // namespace quern::onnx
