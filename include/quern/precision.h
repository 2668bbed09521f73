// Mixed precision: a graph whose products are over halves, while everything else stays as it is.
//
//   quern::Result<quern::Graph> half = quern::MixedPrecision(g, {.dtype = "bf16"});
//   quern::Result<quern::Program> program = half->Compile();
//
// Operands of f32 of products and of attention become halves by Casts that the graph then has, those of weights once
// per binding, and results f32 again. Products add up in f32. Norms, softmax, reductions, losses and recurrences are
// not touched, and neither are inputs, outputs, parameters and their bytes.
#pragma once

#include <string>
#include <vector>

#include "quern/graph.h"
#include "quern/result.h"

namespace quern {

struct PrecisionOptions {
  std::string dtype = "bf16";          // or "f16", whose range ends at 65504
  bool conservative = false;           // weights alone: activations and results are f32 throughout
  std::vector<std::string> ops = {};   // "MatMul", "Conv", ..: these alone; empty: all products and attention
  std::vector<std::string> keep = {};  // what has a label that begins so stays as it is: "layers.0", "lm_head"
};

// The graph in ops, as Graph::LowerForAutodiff gives it, with those Casts. Errors: that of the graph; kInvalid, for
// another dtype; kUnknownOp.
Result<Graph> MixedPrecision(const Graph& graph, const PrecisionOptions& options = {});

}  // namespace quern
