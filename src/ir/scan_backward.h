// What ScanBackward and ScanBackwardXs have in common: the gradients of a Scan, from those of its results, in one sweep
// from its last step to its first.
//
//   operands: those of the Scan; the gradients of its results that are floats
//   body: that of the Scan    vjp: of the body as of a CustomFn: its Inputs, its outputs, gradients of those that are
//   floats; makes the gradients of its Inputs that are floats
// Every step back runs the body again on the carries that the step began with. These are kept of all steps, or, with
// `checkpoints` K, of every ceil(length / K)th, from which the others are made again.
#pragma once

#include <vector>

#include "ir/op.h"

namespace quern::ir {

std::vector<AttrDef> ScanBackwardAttributes();
// The types of the gradients of what is a float among the carries, the xs and the captures, in this order; `xs`: of the
// xs alone.
StatusOr<std::vector<TensorType>> InferScanBackward(const InferContext& context, bool xs);
Status ReferenceScanBackward(RefContext& context, bool xs);
StatusOr<std::vector<Value>> ExpandScanBackward(Graph& graph, const Node& node, std::span<const Value> inputs,
                                                int origin, bool xs);

}  // namespace quern::ir
