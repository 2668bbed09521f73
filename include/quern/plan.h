// What a graph's program will be, before there is one: what it is given and where that lies, how much memory it takes,
// and by which variants. Planned, but not compiled to machine code.
//
//   quern::Result<quern::BindingManifest> plan = quern::PlanOf(graph);
//   for (const quern::WeightBlock& block : plan->weight_blocks) Upload(block.params);   // "layers.0", "layers.1", ...
//   plan->variants.back().arena_most;      // bytes for values on the way, at the largest sizes
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quern/graph.h"
#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

// An input, output, parameter or state.
struct BindingPort {
  std::string name, dtype;
  std::vector<std::string> dims;  // numbers, or polynomials of symbols: "2*SEQ + 1"
  std::string bytes;              // likewise
  std::string home;               // "caller" (inputs, outputs, parameters), "state" (kept from run to run)
  int64_t offset = 0;             // of a state in the memory of all states, each at a multiple of 64
};

// Parameters that belong together: by the part of their names up to the first number ("layers.3" of
// "layers.3.ffn.up"), whole names where there is none. In the order in which the graph first uses them.
struct WeightBlock {
  std::string prefix;
  std::vector<std::string> params;
  int64_t bytes = 0;
};

struct VariantPlan {
  std::string guard;               // "SEQ in 2..8", "" for all other sizes
  std::string phase;               // "prologue" once a binding, then "steady": with such work; else "steady"
  uint64_t key = 0;                // the same in every run and on every machine for the same graph, guard and options
  int kernels = 0;                 // distinct ones
  int launches = 0, once = 0;      // of a run, and of the work once a binding (the prologue)
  std::map<std::string, int> ops;  // of the graph that is fused, by name
  std::string arena_bytes;         // for values on the way: a polynomial
  int64_t arena_most = 0;          // at the largest sizes of the variant; -1: without bound
  int64_t packed_bytes = 0;        // kept for what depends on parameters alone
};

struct BindingManifest {
  std::string graph, fingerprint;
  std::vector<BindingPort> inputs, outputs, params, states;
  std::vector<std::pair<std::string, int>> donations;  // a state, and the graph's output that takes its place
  std::vector<WeightBlock> weight_blocks;
  int64_t param_bytes = 0, state_bytes = 0;  // of all; each parameter once, however often it is used
  std::vector<VariantPlan> variants;         // those that Graph::Compile would make

  // All of it; the names are those of the fields.
  std::string Json() const;
};

// Of Options, cpu, exact, invariant and kernels count. Errors: those of Graph::Compile, but for parameters without
// bytes.
Result<BindingManifest> PlanOf(const Graph& graph, const Options& options = {});

struct EquivalenceOptions {
  uint64_t seed = 1;
  int runs = 3;             // each with sizes and values of its own
  int64_t largest = 16;     // size of a symbol at most, where its range has such a size
  double tolerance = 1e-5;  // of floats: relative to their size, and to that of the largest in the output
};

// Whether two graphs of equal inputs, states and outputs compute the same on random values: each is compiled and run on
// this machine, with values for all parameters in the place of their bytes, the same for one name. A sentence about the
// first difference; empty: none was found. Errors: kInvalid, for graphs of other inputs, states or outputs; those of
// compiling and running.
Result<std::string> Equivalent(const Graph& a, const Graph& b, const EquivalenceOptions& equivalence = {},
                               const Options& options = {});

}  // namespace quern
