// Logical kernels: ops that have a kernel of their own and are known in other ops as well, so that a policy may choose.
#pragma once

#include <span>
#include <vector>

#include "ir/op.h"

namespace quern::ir {

struct LogicalKernel {
  const OpDef* op = nullptr;
  // Whether the node has the form below.
  bool (*spellable)(const Node& node) = nullptr;
  // The values that take the place of the results, of plain ops, within the op's contract; but that a NaN which a mask
  // hides reaches what would not have seen it.
  StatusOr<std::vector<Value>> (*spell)(Graph& graph, const Node& node, std::span<const Value> inputs,
                                        int origin) = nullptr;
};

// All of them. Immutable, thread-safe.
std::span<const LogicalKernel> LogicalKernels();
// The one of that op, or null.
const LogicalKernel* FindLogical(const OpDef& op);
// Whether there is a kernel for the op, though none for this node, which is expanded.
bool LacksKernel(const Node& node);

}  // namespace quern::ir
