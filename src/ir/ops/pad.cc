// Pad: `low` and `high` elements of `value` before and after, per dimension.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  const std::vector<int64_t>&low = context.attributes.Ints("low"), &high = context.attributes.Ints("high");
  if (low.size() != result.dims.size() || high.size() != result.dims.size() || IsBlock(result.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("Pad: low and high need one entry for each dimension of %s", result.ToString()));
  }
  for (size_t d = 0; d < low.size(); ++d) {
    if (low[d] < 0 || high[d] < 0) return absl::InvalidArgumentError("Pad: negative padding is a Slice");
    result.dims[d] = result.dims[d] + Extent(low[d]) + Extent(high[d]);
  }
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  namespace kb = kir::build;
  const std::vector<int64_t>& low = context.node().attributes.Ints("low");
  kir::Index at = context.index();
  for (size_t d = 0; d < low.size(); ++d) at[d] = at[d] - static_cast<double>(low[d]);
  const DType dtype = context.result_type().dtype;
  return context.Operand(0, std::move(at),
                         kb::CastTo(dtype, kb::Num(context.node().attributes.Float("value"), DType::kF64)));
}

// Below and above along each dimension, within what the dimensions before it leave; and the operand.
std::vector<Piece> Pieces(const Node& node, std::span<const TensorType> operands) {
  namespace kb = kir::build;
  const std::vector<int64_t>& low = node.attributes.Ints("low");
  const kir::ExprRef fill = kb::CastTo(node.results[0].dtype, kb::Num(node.attributes.Float("value"), DType::kF64));
  Piece rest;
  for (const Extent& dim : node.results[0].dims) rest.ranges.emplace_back(0, dim);
  std::vector<Piece> pieces;
  for (size_t d = 0; d < low.size(); ++d) {
    const Extent first(low[d]), last = first + operands[0].dims[d];
    for (const auto& [from, to] : {std::pair(Extent(0), first), std::pair(last, node.results[0].dims[d])}) {
      if (from == to) continue;
      Piece slab = rest;
      slab.ranges[d] = {from, to};
      slab.fill = fill;
      pieces.push_back(std::move(slab));
    }
    rest.ranges[d] = {first, last};
  }
  rest.operand = 0;
  pieces.push_back(std::move(rest));
  return pieces;
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const std::vector<int64_t>& low = context.node.attributes.Ints("low");
  std::vector<int64_t> index(y.dims.size());
  for (double& out : y.data) {
    std::vector<int64_t> at = index;
    bool inside = true;
    for (size_t d = 0; d < at.size(); ++d) {
      at[d] -= low[d];
      inside &= at[d] >= 0 && at[d] < x.dims[d];
    }
    out = inside ? x.At(at) : RoundTo(y.dtype, context.node.attributes.Float("value"));
    NextIndex(y.dims, index);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_pad() {
  static const OpDef* const op = Make({
      .name = "Pad",
      .doc = "elements of `value` before and after, per dimension",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "low", .kind = AttrKind::kInts},
                     {.name = "high", .kind = AttrKind::kInts},
                     {.name = "value", .kind = AttrKind::kFloat, .default_value = 0.0}},
      .infer = Infer,
      .map = Map,
      .pieces = Pieces,
      .reference = Reference,
      .onnx = "Pad",
  });
  return *op;
}

}  // namespace quern::ir
