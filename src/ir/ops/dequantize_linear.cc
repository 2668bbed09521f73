// DequantizeLinear: (x - zero point) * scale, in the dtype of the scale. The difference is exact.

#include <cmath>

#include "ir/linear_quantise.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const int bits = 8 * ScalarBytes(x.dtype);
  if (bits > 32 || x.dtype == DType::kU32) return context.DTypeError(0, "i8, u8, i16, u16 or i32");
  QUERN_RETURN_IF_ERROR(CheckScales(context));
  return std::vector<TensorType>{{context.operands[1].dtype, x.dims}};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType x = graph.type(inputs[0]);
  Value y = inputs[0];
  if (inputs.size() > 2) {
    const DType room = ScalarBytes(x.dtype) < 4 ? DType::kI32 : DType::kI64;
    y = e.Add("Sub", {e.Stored(y, room), ScaleOf(e, e.Stored(inputs[2], room), x, node.attributes)});
  }
  const Value scale = ScaleOf(e, e.Wide(inputs[1]), x, node.attributes);
  if (!e.ok()) return e.Finish({});
  y = e.Add("Mul", {e.Stored(y, e.type(scale).dtype), scale});
  return e.Finish({e.Stored(y, node.results[0].dtype)});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &scale = *context.operands[1];
  const RefTensor* zero = context.operands.size() > 2 ? context.operands[2] : nullptr;
  RefTensor& y = context.results[0];
  std::vector<int64_t> index(x.dims.size());
  const int64_t elements = x.elements();
  for (int64_t at = 0; at < elements; ++at, NextIndex(x.dims, index)) {
    const int64_t s = ScaleAt(scale, index, context.node.attributes);
    const Wide difference = x.Integer(at) - (zero == nullptr ? 0 : zero->Integer(s));
    y.data[at] = RoundTo(y.dtype, static_cast<double>(difference) * scale.data[s]);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_dequantize_linear() {
  static const OpDef* const op = Make({
      .name = "DequantizeLinear",
      .doc = "(x - zero point) scale",
      .kind = OpKind::kComposite,
      .operands =
          {{.name = "x", .kind = OperandKind::kInteger, .shape = "of at most 32 bits"},
           {.name = "scale", .kind = OperandKind::kFloat, .shape = "[], [axis of x] or blocks of x", .own_dtype = true},
           {.name = "zero_point", .kind = OperandKind::kInteger, .shape = "as scale", .optional = true}},
      .attributes = ScaleAttributes(),
      .infer = Infer,
      .channels_last = ScalesChannelsLast,
      .reference = Reference,
      .expand = Expand,
      .onnx = "DequantizeLinear",
      .examples = {{{"i8[3, 5]", "f32[]", "i8[]"}},
                   {{"u8[2, 7, 3]", "f32[7]", "u8[7]"}},
                   {{"i16[S, 17]", "f16[S]"}, {{"axis", int64_t{0}}}},
                   {{"i32[3, 17]", "f32[3, 3]"}, {{"block", int64_t{7}}}}},
  });
  return *op;
}

bool IsDequantizeLinear(const Node& node) { return node.op == &Op_dequantize_linear(); }

}  // namespace quern::ir
