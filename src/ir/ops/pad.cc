// Pad: `low` and `high` elements of `value` before and after, per dimension.

#include "ir/fill.h"
#include "ir/identity.h"
#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  const std::vector<int64_t>&low = context.attributes.Ints("low"), &high = context.attributes.Ints("high");
  for (const char* side : {"low", "high"}) {
    const std::vector<int64_t>& counts = context.attributes.Ints(side);
    if (counts.size() != result.dims.size() ||
        std::any_of(counts.begin(), counts.end(), [](int64_t n) { return n < 0; }))
      return context.AttributeError(side, absl::StrFormat("%d numbers of 0 or more", result.rank()));
  }
  for (size_t d = 0; d < low.size(); ++d) result.dims[d] = result.dims[d] + Extent(low[d]) + Extent(high[d]);
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
  const double value = context.node.attributes.Float("value");
  const int64_t elements = y.elements();
  std::vector<int64_t> index(y.dims.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    std::vector<int64_t> place = index;
    bool inside = true;
    for (size_t d = 0; d < place.size(); ++d) {
      place[d] -= low[d];
      inside &= place[d] >= 0 && place[d] < x.dims[d];
    }
    if (inside)
      y.Take(at, x, x.Offset(place));
    else
      Fill(y, at, value);
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
      .identity = Unchanged,
      .reference = Reference,
      .onnx = "Pad",
  });
  return *op;
}

}  // namespace quern::ir
