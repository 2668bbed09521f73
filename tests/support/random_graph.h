// Seeded random MIR graphs for property tests, driven by the op table: every elementwise op takes part by the operands
// its table row declares, structural ops by a recipe each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/interpret.h"

namespace quern::testing {

struct RandomGraphOptions {
  int nodes = 24;             // about: recipes may add a few more
  bool discontinuous = true;  // comparisons, rounding, casts to integers: a kernel's rounding may flip them
  bool composites = true;
  bool updates = true;          // carried state
  bool blocks = true;           // weights in block formats
  int64_t most_elements = 600;  // of a leaf, about
  bool calls = false;           // ops that C functions compute
  bool counted = false;         // sizes that runs find, which only CPUs do
  int bodies = 0;               // how deep in each other If, While and Scan may stand; 0: there are none
};

struct RandomGraph {
  ir::Graph graph;
  Binding binding;  // of its symbols
};

// Sizes for which the graphs run: of a batch B to 4, a sequence S to 17, another T that is as long, and P places that
// were filled before.
inline constexpr int64_t kMostPast = 23;
inline Binding RandomBinding(int64_t b, int64_t s, int64_t p) { return {{"B", b}, {"P", p}, {"S", s}, {"T", s}}; }

// Dims are distinct primes, numbers around 4, 8, 16 and 32, ones, and symbols; values stay of moderate size. The graph
// verifies. Aborts on an error of the builder, for that is a bug of the generator.
RandomGraph MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options = {});

// Memory for every Input and Param by name: floats in [-2, 2] (rounded to their dtype), integers of every size, bools,
// blocks.
std::map<std::string, std::vector<uint8_t>, std::less<>> RandomBytes(const ir::Graph& graph, const Binding& binding,
                                                                     uint64_t seed);
// The same as tensors of the interpreter.
ir::Feeds RandomFeeds(const ir::Graph& graph, const Binding& binding, uint64_t seed);

}  // namespace quern::testing
