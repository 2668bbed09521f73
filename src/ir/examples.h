// Examples of an op in other dtypes: what docs/ops.md says of which there are kernels for, and what the test of that
// page compiles and runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/op.h"

namespace quern::ir {

// The dtypes of one scalar each, in the order of the page.
std::span<const DType> ScalarDTypes();

// A graph of one node of the op, whose results it gives; S is a symbol of 1 to 17.
struct ExampleGraph {
  Graph graph;
  Status status;  // why the node was refused: there is no graph then
};

// What the op's examples are where operand 0, and those that have its dtype, have this one; of an elementwise op
// without examples operands [2, 3].
std::vector<ExampleGraph> ExamplesIn(const OpDef& op, DType dtype);

// Whether one of them is taken.
bool Computes(const OpDef& op, DType dtype);

}  // namespace quern::ir
