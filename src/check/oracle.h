// The double interpreter with error bars: what a kernel may answer, given what each op of the graph promises.
//
// A graph is evaluated once as written, and some times more with every result moved by up to the numeric contract of
// its op: OpDef::rtol of the magnitude of its result (its own size; of sums that of their terms) and OpDef::atol, one
// rounding for + - * / sqrt, nothing for ops that compare, select or move elements, and nothing for integers, which are
// exact. An element may be as far off as those runs spread, three times over, and its own contract. So errors spread as
// the graph spreads them, a comparison of close values may go either way, and nothing is forgiven elsewhere: a result
// near 0 is held to its own size, and f64 to places of f64. The further runs are made when an element is not within the
// contract of its own op alone, and many more of them before one is called wrong.
//
//   QUERN_ASSIGN(GraphOracle oracle, GraphOracle::Create(graph, binding, feeds, seed));
//   QUERN_ASSIGN(std::optional<Difference> worst, oracle.Worst(0, answer));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/evaluate.h"
#include "ir/graph.h"
#include "ir/interpret.h"

namespace quern::check {

// An element outside of what it may be.
struct Difference {
  int output = 0;
  int64_t element = 0;           // row-major; of c64 re and im are two
  double got = 0, expected = 0;  // of 64-bit integers the nearest doubles
  double allowed = 0;            // |got - expected| that would have passed
  int64_t wrong = 0;             // such elements of this output
  std::string got_text, expected_text;
};

class GraphOracle {
 public:
  // `graph` and the rest must outlive the oracle. Composites are evaluated by their own reference; no Region is in it.
  static StatusOr<GraphOracle> Create(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds,
                                      uint64_t seed);

  const std::vector<ir::RefTensor>& expected() const { return expected_; }
  // The element of an output that is furthest outside of what it may be, in units of that; none when all are inside.
  // Error: another dtype or shape.
  StatusOr<std::optional<Difference>> Worst(int output, const ir::RefTensor& got);
  // The same as text: "" when all are inside.
  std::string WorstText(int output, const ir::RefTensor& got);
  // Elements that only the many further runs explained.
  int64_t doubted() const { return doubted_; }

 private:
  // How far each element was off what is expected, over all runs.
  struct Range {
    std::vector<double> most;
    std::vector<double> sizes;  // magnitudes, of floats
    std::vector<bool> wild;     // not finite in some runs only
  };

  GraphOracle(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds, uint64_t seed);
  Status Widen(int runs, double scale);
  // How far an element may be off; infinite where it may be anything.
  double Allowed(int output, Error error, size_t element) const;
  std::optional<Difference> Judge(int output, const ir::RefTensor& got) const;

  const ir::Graph& graph_;
  Binding binding_;  // with the sizes that values find
  const ir::Feeds& feeds_;
  const uint64_t seed_;
  std::vector<ir::RefTensor> expected_;
  Magnitudes magnitudes_;
  std::vector<Range> ranges_;
  uint64_t runs_ = 0;
  int64_t doubted_ = 0;
  int widened_ = 0;  // of the two steps
};

}  // namespace quern::check
