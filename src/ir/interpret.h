// The graph interpreter: the oracle. Evaluates every node by its op's `reference`, in double and exact integers,
// sharing nothing with kernels or with the index maps that code generation uses.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"

namespace quern::ir {

// Values of Inputs and Params by name.
using Feeds = std::map<std::string, RefTensor, std::less<>>;

// The outputs of `graph`. Errors: an unbound symbol, a missing feed or one of another shape or dtype, a violated extent
// constraint, an op without a reference. Composites are evaluated through their own reference.
StatusOr<std::vector<RefTensor>> Interpret(const Graph& graph, const Binding& binding, const Feeds& feeds);

// Before a graph runs, or a body once more: `binding` forgets what it is to find. Error: sizes that are left break a
// constraint.
Status BeginSizes(const Graph& graph, Binding& binding);
// Gives the symbol of a Counted the value of its count. Errors: kOutOfRange, no such many elements; sizes that do not
// go with it.
Status BindCount(const Graph& graph, const Node& node, const RefTensor& count, Binding& binding);

// Decodes `bytes` (dense, or rows of blocks) as a tensor of `type` with the given sizes.
StatusOr<RefTensor> RefTensorFromBytes(DType dtype, std::vector<int64_t> dims, std::span<const uint8_t> bytes);
// The dense little-endian bytes, every element rounded once. Precondition: no block format.
std::vector<uint8_t> BytesOf(const RefTensor& tensor);

}  // namespace quern::ir
