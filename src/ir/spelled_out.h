// What passes that find an op spelled out in others ask of single nodes. Each answer stands in the file of its op.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace quern::ir {

// `x` times one number, whatever the element: x * c, c * x or x / c.
struct Scaled {
  Value x;
  double factor = 1;
};
std::optional<Scaled> AsScaled(const Graph& graph, const Node& node);

// e^(x - max x) / sum e^(x - max x) along one axis.
struct SpelledSoftmax {
  Value x;
  int64_t axis = 0;         // from the start
  std::vector<int> inside;  // the nodes between x and the last one
};
std::optional<SpelledSoftmax> AsSoftmax(const Graph& graph, const Node& node);

// The halves that the node gives as floats of 32 bits, each the same number.
std::optional<Value> AsWidened(const Graph& graph, const Node& node);

// Whether each element takes a function such as exp, some tens of instructions.
bool CallsMath(const Node& node);

// a + b; condition ? a : b; tanh x; x repeated where its extents are 1.
bool IsSum(const Node& node);
bool IsChoice(const Node& node);
bool IsTanh(const Node& node);
bool IsRepeat(const Node& node);
// Dimension d of the result is dimension perm[d] of the operand; null for other nodes.
const std::vector<int64_t>* PermutationOf(const Node& node);

}  // namespace quern::ir
