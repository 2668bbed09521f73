// Dequantise: the numbers of a tensor in a block format, in the same dimensions.

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& w = context.operands[0];
  if (!IsBlock(w.dtype)) return context.DTypeError(0, "a block format");
  if (w.rank() < 2) return context.ShapeError(0, "rank 2 or more");
  const DType to = context.attributes.Type("to");
  if (!IsFloat(to)) return context.AttributeError("to", "f32, f16, bf16 or f64");
  return std::vector<TensorType>{{to, w.dims}};
}

// All rows of it by their numbers.
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value rows = e.Add("Gather", {inputs[0], e.Iota({node.results[0].dims[0]})}, {{"axis", int64_t{0}}});
  return e.Finish({e.Stored(rows, node.results[0].dtype)});
}

Status Reference(RefContext& context) {
  const RefTensor& w = *context.operands[0];
  RefTensor& y = context.results[0];
  for (size_t at = 0; at < w.data.size(); ++at) y.data[at] = RoundTo(y.dtype, w.data[at]);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_dequantise() {
  static const OpDef* const op = Make({
      .name = "Dequantise",
      .doc = "the numbers of a tensor in a block format",
      .kind = OpKind::kComposite,
      .operands = {{.name = "w", .kind = OperandKind::kTable, .shape = "[.., K], a Param of a block format"}},
      .attributes = {{.name = "to", .kind = AttrKind::kDType, .default_value = DType::kF32}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 1e-6,
      .examples = {{{"q8_0[5, 64]"}}, {{"q4_K[2, 3, 256]"}, {{"to", DType::kF16}}}},
  });
  return *op;
}

}  // namespace quern::ir
