// Random graphs with the values of their runs and what they make by definition: what tests of whole targets draw from.
#pragma once

#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "check/oracle.h"
#include "opt/passes.h"
#include "support/environment.h"
#include "support/random_graph.h"
#include "unit/compiler/graph_runner.h"

namespace quern::testing {

inline uint64_t SeedOf(uint64_t slice, uint64_t graph) { return slice * 1000000 + graph + 1; }

// Values of one run, and what they make by definition.
struct Trial {
  Binding binding;
  BytesByName bytes;
  ir::Feeds feeds;
  std::unique_ptr<check::GraphOracle> oracle;
};

struct Case {
  uint64_t seed = 0;
  RandomGraph random;
  bool exact = false;
  ir::Graph meaning;  // what the interpreter evaluates: `random`, with quantised activations where they are asked for
  SymbolRanges guard;
  std::vector<Trial> trials;
};

// `on_cpu`: half of the graphs, those that are not exact, mean quantised activations beside weights of block formats;
// some find sizes. Devices do neither.
inline StatusOr<Case> MakeCase(uint64_t seed, bool on_cpu = true) {
  std::mt19937_64 choose(seed * 7919);
  Case made;
  made.seed = seed;
  // Now and then values large enough that a kernel has several chunks.
  const bool large = seed % 32 == 0;
  made.random = MakeRandomGraph(seed, {.nodes = static_cast<int>(6 + choose() % 10),
                                       .discontinuous = seed % 4 != 0,
                                       .most_elements = large ? 40000 : 600,
                                       .calls = true,
                                       .counted = on_cpu && seed % 3 == 0});
  made.exact = choose() % 2 == 0 || !on_cpu;
  made.meaning = made.random.graph;
  if (!made.exact) {
    QUERN_ASSIGN(const ir::Graph expanded, opt::ExpandComposites(made.random.graph));
    QUERN_ASSIGN(made.meaning, opt::QuantiseActivations(expanded, {.as_bf16 = true}));
  }
  std::vector<Binding> bindings = {made.random.binding};
  if (choose() % 3 == 0) {
    for (const auto& [symbol, value] : made.random.binding) made.guard[symbol] = {value, value};
  } else {
    const auto below = [&](int64_t n) { return static_cast<int64_t>(choose() % static_cast<uint64_t>(n)); };
    bindings.push_back(RandomBinding(1 + below(4), 1 + below(17), below(kMostPast + 1)));
  }
  for (const Binding& binding : bindings) {
    Trial& trial = made.trials.emplace_back();
    trial.binding = binding;
    trial.bytes = RandomBytes(made.random.graph, binding, seed);
    trial.feeds = RandomFeeds(made.random.graph, binding, seed);
  }
  return made;
}

// Oracles keep references into the case: made once it has its place.
inline Status MakeOracles(Case& test) {
  for (Trial& trial : test.trials) {
    QUERN_ASSIGN(check::GraphOracle oracle,
                 check::GraphOracle::Create(test.meaning, trial.binding, trial.feeds, test.seed));
    trial.oracle = std::make_unique<check::GraphOracle>(std::move(oracle));
  }
  return absl::OkStatus();
}

}  // namespace quern::testing
