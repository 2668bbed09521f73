// ScanBackwardXs: the gradients of a Scan in its xs alone, as far as they are floats (ir/scan_backward.h).

#include "ir/scan_backward.h"
#include "ir/shape.h"

namespace quern::ir {

const OpDef& Op_scan_backward_xs() {
  static const OpDef* const op = Make({
      .name = "ScanBackwardXs",
      .doc = "the gradients of a Scan in its xs alone, as far as they are floats",
      .kind = OpKind::kComposite,
      .operands = {{.name = "operands of the Scan, and gradients of its results",
                    .optional = true,
                    .variadic = true,
                    .own_dtype = true}},
      .attributes = ScanBackwardAttributes(),
      .bodies = {"body", "vjp"},
      .infer = [](const InferContext& c) { return InferScanBackward(c, true); },
      .reference = [](RefContext& c) { return ReferenceScanBackward(c, true); },
      .expand = [](Graph& graph, const Node& node, std::span<const Value> inputs,
                   int origin) { return ExpandScanBackward(graph, node, inputs, origin, true); },
      .rtol = 1e-5,
  });
  return *op;
}

}  // namespace quern::ir
