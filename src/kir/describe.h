// One line for a statement, as diagnostics name it: leaves in full, statements with bodies by their head.
//
//   "y[r, c] = x[r, c] * 0.5"      "for m in 0..M by 32"      "map (i, j) in g, u [32, 16]"
#pragma once

#include <string>

#include "kir/kir.h"

namespace quern::kir {

std::string Describe(const Stmt& stmt);
std::string Describe(const Slice& slice);
std::string Describe(const GridDim& dim);

}  // namespace quern::kir
