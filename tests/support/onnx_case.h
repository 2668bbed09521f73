// A test case in the layout of ONNX's backend tests: model.onnx, and test_data_set_0 with input_0.pb, output_0.pb ..
#pragma once

#include <string>

namespace quern::testing {

struct OnnxOutcome {
  enum class Kind { kPassed, kWrong, kRefused, kNotDense } kind = Kind::kPassed;
  std::string reason;      // a sentence, where it did not pass
  double difference = 0;   // the largest, absolute
  bool fixed = false;      // values of inputs became part of the graph
  std::string sizes = {};  // why all sizes became part of it too, in a sentence; empty: they did not
};

// Compiles the model just in time and runs it on the data set. `atol` and `rtol` are those of floats; halves have at
// least 1e-3 of both. Inputs that no op needs as numbers stay inputs.
OnnxOutcome RunOnnxCase(const std::string& folder, const std::string& data_set, double atol, double rtol, int threads);

}  // namespace quern::testing
