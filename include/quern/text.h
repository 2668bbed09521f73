// A graph in a file, text of ops or of blocks, binary (docs/graph-files.md) or ONNX (docs/onnx.md), and the values that
// it runs on: what `quern run`, `profile`, `dump` and `compile` make of it, for who writes ops and looks at their
// kernels.
//
//   # sizes: SEQ=5                          a size of a run, in comments above the graph; docs/checking.md has the form
//   graph g sym SEQ in 1..64 {
//     %0 = Input() {name = "x"} : f32[SEQ, 48]
//     %1 = Softmax(%0) {axis = -1} : f32[SEQ, 48]
//     return %1
//   }
//
//   quern::Result<quern::TextGraph> text = quern::TextGraph::Open("softmax.qir");
//   quern::Result<quern::Program> program = text->graph().Compile();
//   quern::Result<void> ran = text->Run(*program);
//   std::puts(text->Outputs().c_str());     // "output 0  f32[5, 48]  0.0203 0.0139 ..."
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quern/graph.h"
#include "quern/qdq.h"
#include "quern/result.h"

namespace quern {

struct TextOptions {
  std::map<std::string, int64_t> sizes =
      {};             // of symbols, before what the file says; others: 8, or the nearest there is
  uint64_t seed = 1;  // of the values where no file has them: floats in -1..1, whole numbers from 0 to 7
  // Files of values, which count before what the graph's own file names: "NAME=FILE.npy" for an input, state or
  // parameter, "FILE.npz" or "FILE.safetensors" for those its tensors are called after. A size that is a dimension by
  // itself follows from it, unless `sizes` has it. Of a parameter in a block format: its bytes, as u8.
  std::vector<std::string> values = {};
  // Of a model in ONNX: its sizes become part of the graph, which has no symbols.
  bool fix_sizes = false;
};

class TextGraph {
 public:
  // Whether the file is a graph in binary form, a model in ONNX, or text whose first word, but for comments, is "graph"
  // or "module".
  static bool Is(const std::string& path);
  // Errors: kResource, kInvalid with the place in the file, kOutOfRange, kUnknownName (a size of no symbol, values of
  // no input), kShapeMismatch and kDTypeMismatch (of values), kUnsupported (values of a block format that is no
  // weight's), and those of the graph.
  static Result<TextGraph> Open(const std::string& path, const TextOptions& options = {});
  TextGraph(TextGraph&&) noexcept;
  TextGraph& operator=(TextGraph&&) noexcept;
  ~TextGraph();

  // Its parameters have their values, which are this object's: it outlives what is compiled.
  const Graph& graph() const;
  // That graph as a program. A model in ONNX that cannot be compiled for all sizes is opened again with `fix_sizes`.
  // Errors: those of Graph::Compile.
  Result<Program> Compile(const Options& options = {});
  // Opens a model in ONNX again with `fix_sizes`; false where there is nothing that it would change. Programs of the
  // graph before are not to be used any more. Errors: those of Open.
  Result<bool> FixSizes();
  // Runs a program of that graph once; states begin with their values each time. Errors: those of Program::Run.
  Result<void> Run(Program& program);
  // Writes the graph, without values: as text where the name ends in .qir, of blocks where it was read as such, else in
  // binary form, which has ops alone. Errors: kResource.
  Result<void> Save(const std::string& path) const;
  // A run of a calibrator of that graph on its values. Errors: those of Calibrator::Run.
  Result<void> Calibrate(Calibrator& calibrator) const;
  // Writes what InsertQdq makes of the graph, as Save does. Parameters whose values files have become constants: what
  // is written is the whole of it. Errors: those of InsertQdq; kResource.
  Result<void> SaveQuantised(const std::string& path, const QuantisationMap& map) const;
  // The same of what WithQuantisation makes of it: the graph of floats, and the map as a part of it.
  Result<void> SaveWithQuantisation(const std::string& path, const QuantisationMap& map) const;
  // Writes what the last run computed: "NAME=FILE.npy" one output, "FILE.npz" or "FILE.safetensors" all. Errors:
  // kInvalid, for what is none; kUnknownName; kUnsupported (bf16 as .npy); kResource.
  Result<void> SaveOutputs(const std::string& file) const;
  // What is in the graph, in lines for people: its fingerprint, sizes, inputs, outputs, parameters, ops.
  std::string Describe() const;
  // What differs in `other`: a line for each node that one of the two has alone ("-", "+") or over other operands
  // ("~"), and for what else differs; empty where nothing but labels and names of graphs does.
  std::string Diff(const TextGraph& other, const DiffOptions& options = {}) const;
  // The outputs of the last run: a line each with its name, type and first elements.
  std::string Outputs() const;

 private:
  struct State;
  explicit TextGraph(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quern
