// Values of Constant nodes, as doubles and back as bytes.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"

namespace quern::opt {

// The value of a Constant of one element; nullopt for any other node.
std::optional<double> ScalarConstant(const ir::Graph& graph, ir::Value value);

// The little-endian bytes of `tensor`, or nullopt when a double may not hold the dtype's values exactly (64-bit
// integers beyond 2^53) or the dtype is a block format.
std::optional<std::vector<uint8_t>> BytesOf(const ir::RefTensor& tensor);

}  // namespace quern::opt
