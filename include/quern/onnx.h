// Models in ONNX (opsets 1 to 22, and the contributed ops of com.microsoft that exports hold): a file becomes a Graph,
// whose inputs and outputs have the model's names. docs/onnx.md says what is covered.
//
//   quern::Result<quern::OnnxModel> model = quern::OnnxModel::Open("mnist.onnx");
//   quern::Result<quern::Program> program = model->graph().Compile();
//   quern::Result<void> ran = program->Run({quern::In("image", pixels, {1, 1, 28, 28})},
//                                          {quern::Out("scores", scores, {1, 10})});
//
// A named dimension of an input is a symbol of the graph by that name, with _ for what is no letter or digit; an
// unnamed one is called INPUT_2, after its input and position. Where an op needs a number before anything runs, sizes
// and values that the options have become part of the graph (fixed_sizes, fixed_inputs): it is right for those alone.
//
// The model keeps the file's weights, of which there is one copy, and must outlive the programs of its graph. It is for
// one thread at a time; different ones are independent.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quern/graph.h"
#include "quern/result.h"

namespace quern {

struct OnnxOptions {
  std::map<std::string, int64_t> sizes = {};  // of symbols, for ops that need numbers
  std::vector<std::string> values = {};       // of inputs, likewise: files as TextOptions::values has them
  // All sizes are those of the options, and the graph has no symbols: what cannot be compiled for all may be for some.
  bool fix_sizes = false;
};

class OnnxModel {
 public:
  // Whether the file begins as an ONNX model does.
  static bool Is(const std::string& path);
  // Errors: kResource; kInvalid, for what is no such file, or is wrong in it; kUnsupported, with the op and the name of
  // the node, for what there is no op for, or what needs a size or value that the options lack; those of the graph.
  static Result<OnnxModel> Open(const std::string& path, const OnnxOptions& options = {});
  OnnxModel(OnnxModel&&) noexcept;
  OnnxModel& operator=(OnnxModel&&) noexcept;
  ~OnnxModel();

  // With its parameters bound, to memory of this object.
  const Graph& graph() const;
  // The outputs of the model, in its order, as the graph has them. Of those whose size only data decide
  // Program::LastShapes says how large they are.
  const std::vector<std::string>& outputs() const;
  // What became part of the graph.
  const std::map<std::string, int64_t>& fixed_sizes() const;
  const std::vector<std::string>& fixed_inputs() const;

  // What of a model there is no importer for: a line for each op and type, with the first node or tensor that has it.
  // Empty: all is covered, as far as names say. Errors: kResource, kInvalid.
  static Result<std::vector<std::string>> NotCovered(const std::string& path);

 private:
  struct State;
  explicit OnnxModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quern
