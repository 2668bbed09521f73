// Halves for products: what bounds their operands in memory and arithmetic. Sums, norms, softmax and losses stay f32.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace quern::opt {

struct PrecisionOptions {
  DType dtype = DType::kBF16;          // or kF16
  bool weights_only = false;           // what is given once per binding alone
  std::vector<std::string> ops = {};   // of these names alone; none: of all that are products
  std::vector<std::string> keep = {};  // nodes whose label begins so stay as they are
};

// Operands of f32 of products and attention are cast to halves, and their results back. An op is a product where all
// that it stands for are products, attention, moves and elementwise ops. Not for names around those: a graph as
// hir::LowerForAutodiff makes it.
StatusOr<ir::Graph> MixPrecision(const ir::Graph& graph, const PrecisionOptions& options);

}  // namespace quern::opt
