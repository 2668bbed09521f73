// Expand: the operand broadcast to `shape`, right-aligned.

#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const std::vector<Extent>& shape = context.attributes.Extents("shape");
  QUERN_ASSIGN(const std::vector<Extent> dims, BroadcastDims(x.dims, shape, context.constraints));
  if (dims != shape || IsBlock(x.dtype))
    return absl::InvalidArgumentError(absl::StrFormat("Expand: %s does not broadcast to the shape", x.ToString()));
  return std::vector<TensorType>{{x.dtype, dims}};
}

Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  std::vector<int64_t> index(y.dims.size());
  for (double& out : y.data) {
    out = context.operands[0]->At(index);
    NextIndex(y.dims, index);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_expand() {
  static const OpDef* const op = Make({
      .name = "Expand",
      .doc = "the operand broadcast to `shape`, right-aligned",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "shape", .kind = AttrKind::kExtents}},
      .infer = Infer,
      .map = [](MapContext& c) { return BroadcastOperand(c, 0); },
      .broadcasts = true,
      .reference = Reference,
      .onnx = "Expand",
  });
  return *op;
}

}  // namespace quern::ir
