// DenseSolve and BatchedDenseSolve: x of a x = b, of one matrix or of a batch of them.
#pragma once

#include <vector>

#include "ir/op.h"

namespace quern::ir {

const OpDef* SolveOfDense(const char* name, const char* doc, bool batched, std::vector<Example> examples);

}  // namespace quern::ir
