// The double interpreter with error bars: what a kernel may answer, given what each op of the graph promises.
//
// A graph is evaluated once as written, and some times more with every result moved by up to the numeric contract of its op
// (OpDef::rtol and atol; one rounding for + - * / sqrt; nothing for ops that compare, select or move elements). An element
// may be as far off as those runs spread, three times over, and its own contract. So errors spread as the graph spreads
// them, a comparison of close values may go either way, and nothing is forgiven elsewhere.
//
//   QUERN_ASSIGN(GraphOracle oracle, GraphOracle::Create(graph, binding, feeds, seed));
//   EXPECT_EQ(oracle.FirstDifference(0, answer), "");
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/interpret.h"

namespace quern::testing {

class GraphOracle {
 public:
  // `graph` and the rest must outlive the oracle. Composites are evaluated by their own reference, regions are no part.
  static StatusOr<GraphOracle> Create(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds, uint64_t seed);

  const std::vector<ir::RefTensor>& expected() const { return expected_; }
  // Where the values of an output lie outside of what they may be, or "". An element that does is given many more runs
  // before it is called wrong.
  std::string FirstDifference(int output, const ir::RefTensor& got);
  // Elements that only those runs explained.
  int64_t doubted() const { return doubted_; }

 private:
  // Lowest and highest value of each element, over all runs.
  struct Range {
    std::vector<double> low, high;
    std::vector<bool> wild;  // not finite in some runs only
  };

  GraphOracle(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds, uint64_t seed);
  StatusOr<std::vector<ir::RefTensor>> Evaluate(uint64_t run, double scale) const;
  Status Widen(int runs, double scale);
  bool Allows(int output, size_t element, double got) const;

  const ir::Graph& graph_;
  const Binding& binding_;
  const ir::Feeds& feeds_;
  const uint64_t seed_;
  std::vector<ir::RefTensor> expected_;
  std::vector<Range> ranges_;
  uint64_t runs_ = 0;
  int64_t doubted_ = 0;
  bool widened_ = false;
};

}  // namespace quern::testing
