// ScanBackward: the gradients of a Scan in its carries, xs and captures, as far as they are floats
// (ir/scan_backward.h).

#include "ir/scan_backward.h"
#include "ir/shape.h"

namespace quern::ir {

const OpDef& Op_scan_backward() {
  static const OpDef* const op = Make({
      .name = "ScanBackward",
      .doc = "the gradients of a Scan in its carries, xs and captures, as far as they are floats",
      .kind = OpKind::kComposite,
      .operands = {{.name = "operands of the Scan, and gradients of its results",
                    .optional = true,
                    .variadic = true,
                    .own_dtype = true}},
      .attributes = ScanBackwardAttributes(),
      .bodies = {"body", "vjp"},
      .infer = [](const InferContext& c) { return InferScanBackward(c, false); },
      .reference = [](RefContext& c) { return ReferenceScanBackward(c, false); },
      .expand = [](Graph& graph, const Node& node, std::span<const Value> inputs,
                   int origin) { return ExpandScanBackward(graph, node, inputs, origin, false); },
      .rtol = 1e-5,
  });
  return *op;
}

}  // namespace quern::ir
