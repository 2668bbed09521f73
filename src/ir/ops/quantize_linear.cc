// QuantizeLinear: sat(round(x / scale) + zero point), half to even, in an integer dtype of 8 or 16 bits: that of the
// zero point, or of `to`. A NaN becomes the zero point.

#include <cmath>

#include "ir/linear_quantise.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

bool IsNarrow(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16 || dtype == DType::kU16;
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  DType to = context.attributes.Type("to");
  if (!IsNarrow(to)) return context.AttributeError("to", "i8, u8, i16 or u16");
  if (context.operands.size() > 2) {
    to = context.operands[2].dtype;
    if (!IsNarrow(to)) return context.DTypeError(2, "i8, u8, i16 or u16");
  }
  QUERN_RETURN_IF_ERROR(CheckScales(context));
  return std::vector<TensorType>{{to, context.operands[0].dims}};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType type = graph.type(inputs[0]);
  const Value x = e.Wide(inputs[0]), scale = ScaleOf(e, e.Wide(inputs[1]), type, node.attributes);
  if (!e.ok()) return e.Finish({});
  const DType dtype = e.type(x).dtype;
  Value y = e.Add("Round", {e.Add("Div", {x, scale})});
  y = e.Add("Where", {e.Add("IsNaN", {y}), e.Scalar(0, dtype), y});
  if (inputs.size() > 2)
    y = e.Add("Add", {y, ScaleOf(e, e.Add("Cast", {inputs[2]}, {{"to", dtype}}), type, node.attributes)});
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
    const double q = std::nearbyint(QuotientIn(x.dtype, x.data[at], scale.data[s])),
                 z = zero == nullptr ? 0 : static_cast<double>(zero->Integer(s));
    y.SetInteger(at, Saturated(y.dtype, std::isnan(q) ? z : q + z));
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_quantize_linear() {
  static const OpDef* const op = [] {
    std::vector<AttrDef> attributes = ScaleAttributes();
    attributes.push_back({.name = "to",
                          .kind = AttrKind::kDType,
                          .default_value = DType::kU8,
                          .doc = "without a zero point: i8, u8, i16 or u16"});
    return Make({
        .name = "QuantizeLinear",
        .doc = "x / scale + zero point, rounded half to even, as the nearest integer that there is",
        .kind = OpKind::kComposite,
        .operands = {{.name = "x", .kind = OperandKind::kFloat},
                     {.name = "scale", .kind = OperandKind::kFloat, .shape = "[], [axis of x] or blocks of x"},
                     {.name = "zero_point",
                      .kind = OperandKind::kInteger,
                      .shape = "as scale",
                      .optional = true,
                      .own_dtype = true}},
        .attributes = std::move(attributes),
        .infer = Infer,
        .channels_last = ScalesChannelsLast,
        .reference = Reference,
        .expand = Expand,
        .onnx = "QuantizeLinear",
        .sample_low = 0.25,
        .sample_high = 4,
        .examples = {{{"f32[3, 5]", "f32[]", "i8[]"}},
                     {{"f32[2, 7, 3]", "f32[7]", "u8[7]"}},
                     {{"f16[S, 17]", "f16[S]"}, {{"axis", int64_t{0}}, {"to", DType::kI16}}},
                     {{"f32[3, 17]", "f32[3, 3]", "u16[3, 3]"}, {{"block", int64_t{7}}}}},
        .jumps = true,
    });
  }();
  return *op;
}

bool IsQuantizeLinear(const Node& node) { return node.op == &Op_quantize_linear(); }

}  // namespace quern::ir
