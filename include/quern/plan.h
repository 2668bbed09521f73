// What a graph's program will be, before there is one: what it is given and where that lies, how much memory it takes,
// and by which variants. Planned, but not compiled to machine code.
//
//   quern::Result<quern::BindingManifest> plan = quern::PlanOf(graph);
//   for (const quern::WeightBlock& block : plan->weight_blocks) Upload(block.params);   // "layers.0", "layers.1", ...
//   plan->variants.back().arena_most;      // bytes for values on the way, at the largest sizes
//   std::puts(plan->Text().c_str());
//   std::puts(quern::Diff(*plan, *quern::PlanOf(changed)).c_str());
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

// Launches that run one after the other under one name.
struct PlanPhase {
  std::string name;  // "prologue": once a binding; "steady"; "epilogue": behind the last product, as sampling
  std::vector<std::string> launches;  // the kernel, and what it computes: "matmul  layers.0/ffn: MatMul"
};

struct VariantPlan {
  std::string guard;  // "S in 2..8", "" for all other sizes
  // What its runs are: of a graph with SEQ "decode" (one token) or "prefill" where it has states, else "encoder";
  // "inference" of others.
  std::string step;
  uint64_t key = 0;                // the same in every run and on every machine for the same graph, guard and options
  int kernels = 0;                 // distinct ones
  std::vector<PlanPhase> phases;   // those that there are, in their order
  std::map<std::string, int> ops;  // of the graph that is fused, by name
  std::string arena_bytes;         // for values on the way: a polynomial
  int64_t arena_most = 0;          // at the largest sizes of the variant; -1: without bound
  int64_t packed_bytes = 0;        // kept for what depends on parameters alone; what variants share is in each
  int64_t constant_bytes = 0;
  int64_t scratch_bytes = 0;  // of each thread
  // Of a run of these sizes: those that were asked for as far as the guard has them, else its largest.
  std::map<std::string, int64_t> sizes;
  int64_t arena = 0;
  double operations = 0;         // of floats and of integer products
  double read = 0, written = 0;  // bytes: of each launch the distinct ones
  bool operations_known = true;  // false: an upper bound, since data decides what is done

  // Of a run: what is no prologue. Those of bodies once.
  int launches() const;
};

// What a program holds once every variant is compiled and has run, beside its code, in bytes.
struct MemoryEstimate {
  int64_t params = 0;  // the caller's, in one place however often they are used
  int64_t states = 0;
  int64_t packed = 0;     // of all variants together
  int64_t arena = 0;      // the largest of the variants', at their sizes
  int64_t constants = 0;  // of all variants
  int64_t scratch = 0;    // of all threads
};

struct BindingManifest {
  std::string graph, fingerprint;
  std::string program;  // 32 digits: of the graph, options, guards, features of the level and the build of the compiler
  std::vector<BindingPort> inputs, outputs, params, states;
  std::vector<std::pair<std::string, int>> donations;  // a state, and the graph's output that takes its place
  std::vector<WeightBlock> weight_blocks;
  int64_t param_bytes = 0, state_bytes = 0;  // of all; each parameter once, however often it is used
  int64_t packed_bytes = 0;                  // of all variants; what they share once
  std::vector<VariantPlan> variants;         // those that Graph::Compile would make

  MemoryEstimate Memory(int threads = 1) const;
  // All of it; the names are those of the fields.
  std::string Json() const;
  // For people.
  std::string Text() const;
};

// `sizes`: of symbols, for what depends on them. Of Options, cpu, exact, invariant and kernels count. Errors: those of
// Graph::Compile, but for parameters without bytes.
Result<BindingManifest> PlanOf(const Graph& graph, const Options& options = {},
                               const std::map<std::string, int64_t>& sizes = {});
// The same of a language model's file; context counts, too. Errors: those of Session::Open.
Result<BindingManifest> PlanOfModel(const std::string& path, const Options& options = {},
                                    const std::map<std::string, int64_t>& sizes = {});

// What differs between two plans, in lines for people: ports, weights and variants that one of the two has alone ("-",
// "+") or that differ ("~"), and of variants that both have, launches likewise. Empty where nothing does. Without
// `names` ports go by their places, with `origins` the labels of launches count as well.
std::string Diff(const BindingManifest& a, const BindingManifest& b, const DiffOptions& options = {});

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
