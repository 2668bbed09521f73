// The double interpreter with every value kept: what oracles, the search for NaNs and the reducer ask of a graph.
#pragma once

#include <cfloat>
#include <vector>

#include "ir/graph.h"
#include "ir/interpret.h"

namespace quern::check {

// What an op's kernel may be off from its reference, per element.
enum class Error { kNone, kRounding /* of the result, once */, kContract /* OpDef::rtol, atol and magnitude */ };
Error ErrorOf(const ir::Graph& graph, const ir::Node& node);
// A rounding, twice over, of results of that dtype: halves are computed in f32.
inline double RoundingOf(DType dtype) { return dtype == DType::kF64 ? 0x1p-52 : 0x1p-23; }
// What flushing denormals may take.
inline double FlushedOf(DType dtype) { return dtype == DType::kF64 ? DBL_MIN : FLT_MIN; }
// How far a float result may be off that `error`: of its magnitude, which is `size` or more where the op says so.
double AllowedOf(const ir::Node& node, Error error, DType dtype, double size);

// Moves every result up or down by what its op may be off, `scale` times. Seeded.
struct Perturbation {
  uint64_t seed = 0;
  double scale = 0;
};

// The magnitudes of results by node, as OpDef::magnitude has them: empty where that of a result is its own size.
using Magnitudes = std::vector<std::vector<std::vector<double>>>;

// The values of all nodes. Leaves are not copied: the feeds must outlive it.
class Evaluation {
 public:
  const ir::RefTensor& At(ir::Value value) const { return *values_[value.node][value.result]; }
  // The magnitude of an element of that value.
  double SizeAt(const Magnitudes& magnitudes, ir::Value value, int64_t element) const;
  // Of all symbols: those that were given, and those that were found.
  const Binding& sizes() const { return sizes_; }

 private:
  friend StatusOr<Evaluation> Evaluate(const ir::Graph&, const Binding&, const ir::Feeds&, Perturbation,
                                       const Magnitudes*);
  std::vector<std::vector<const ir::RefTensor*>> values_;
  std::vector<std::vector<ir::RefTensor>> made_;
  Binding sizes_;
};

// f32 results beyond its range are infinite, as a kernel has them; halves are rounded. `graph` holds no Region
// (InlineRegions). Errors: those of ir::Interpret; values of more than kMostElements elements together.
// Moving results takes the magnitudes of the graph's values, and all sizes, those apart that are found otherwise.
StatusOr<Evaluation> Evaluate(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds,
                              Perturbation perturbation = {}, const Magnitudes* magnitudes = nullptr);
// Of the values that `evaluation` holds.
StatusOr<Magnitudes> MagnitudesOf(const ir::Graph& graph, const Evaluation& evaluation);

}  // namespace quern::check
