// The double interpreter with every value kept: what oracles, the search for NaNs and the reducer ask of a graph.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/interpret.h"

namespace quern::check {

// What an op's kernel may be off from its reference, per element.
enum class Error { kNone, kRounding /* one of f32 */, kContract /* OpDef::rtol and atol */ };
Error ErrorOf(const ir::Graph& graph, const ir::Node& node);
inline constexpr double kRounding = 0x1p-23;  // of f32, twice over

// Moves every result up or down by what its op may be off, `scale` times. Seeded.
struct Perturbation {
  uint64_t seed = 0;
  double scale = 0;
};

// The values of all nodes. Leaves are not copied: the feeds must outlive it.
class Evaluation {
 public:
  const ir::RefTensor& At(ir::Value value) const { return *values_[value.node][value.result]; }

 private:
  friend StatusOr<Evaluation> Evaluate(const ir::Graph&, const Binding&, const ir::Feeds&, Perturbation);
  std::vector<std::vector<const ir::RefTensor*>> values_;
  std::vector<std::vector<ir::RefTensor>> made_;
};

// f32 results beyond its range are infinite, as a kernel has them; halves are rounded. `graph` holds no Region
// (InlineRegions). Errors: those of ir::Interpret; values of more than kMostElements elements together.
StatusOr<Evaluation> Evaluate(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds,
                              Perturbation perturbation = {});

}  // namespace quern::check
