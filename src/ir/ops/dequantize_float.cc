// DequantizeFloat: the values of codes of floats of 8, 6 or 4 bits, one a byte, times a scale.

#include "ir/linear_quantise.h"
#include "ir/shape.h"
#include "ir/small_float.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  if (context.operands[0].dtype != DType::kU8) return context.DTypeError(0, "u8");
  if (!IsFloat(context.attributes.Type("to"))) return context.AttributeError("to", "f32, f16, bf16 or f64");
  if (context.operands.size() > 1) {
    QUERN_RETURN_IF_ERROR(CheckScaleDType(context, 1));
    QUERN_RETURN_IF_ERROR(CheckScales(context));
  }
  return std::vector<TensorType>{{context.attributes.Type("to"), context.operands[0].dims}};
}

// Codes beyond the format's count as those of their low bits.
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const SmallFloat& format = FindSmallFloat(node.attributes.String("format"));
  const TensorType type = graph.type(inputs[0]);
  const DType to = node.results[0].dtype, dtype = to == DType::kF64 ? to : DType::kF32;
  Value codes = e.Stored(inputs[0], DType::kI32);
  if (format.bits < 8) codes = e.Add("BitAnd", {codes, e.Stored(e.Integers({format.codes() - 1}), DType::kI32)});
  Value y = e.Sized(DecodedFloats(e, codes, format, dtype), type.dims);
  if (inputs.size() > 1)
    y = e.Add("Mul", {y, ScaleOf(e, ScaleFloats(e, inputs[1], node.attributes, dtype), type, node.attributes)});
  return e.Finish({e.Stored(y, to)});
}

Status Reference(RefContext& context) {
  const Attributes& attributes = context.node.attributes;
  const SmallFloat& format = FindSmallFloat(attributes.String("format"));
  const RefTensor& x = *context.operands[0];
  const RefTensor* scale = context.operands.size() > 1 ? context.operands[1] : nullptr;
  RefTensor& y = context.results[0];
  std::vector<int64_t> index(x.dims.size());
  const int64_t elements = x.elements();
  for (int64_t at = 0; at < elements; ++at, NextIndex(x.dims, index)) {
    const double by = scale == nullptr ? 1 : ScaleFloat(*scale, ScaleAt(*scale, index, attributes), attributes);
    y.data[at] = RoundTo(y.dtype, ValueOf(format, static_cast<int>(x.integers[at]) % format.codes()) * by);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_dequantize_float() {
  static const OpDef* const op = [] {
    std::vector<AttrDef> attributes = ScaleAttributes();
    attributes.push_back({.name = "format", .kind = AttrKind::kString, .choices = SmallFloats()});
    attributes.push_back(ScaleFormat());
    attributes.push_back({.name = "to", .kind = AttrKind::kDType, .default_value = DType::kF32});
    return Make({
        .name = "DequantizeFloat",
        .doc = "the floats of 8, 6 or 4 bits that x has the codes of, times scale",
        .kind = OpKind::kComposite,
        .operands = {{.name = "x", .kind = OperandKind::kInteger, .shape = "u8, a code each"},
                     {.name = "scale",
                      .shape = "[], [axis of x] or blocks of x; floats, or codes in u8",
                      .optional = true,
                      .own_dtype = true}},
        .attributes = std::move(attributes),
        .infer = Infer,
        .reference = Reference,
        .expand = Expand,
        .onnx = "DequantizeLinear",
        .examples = {{{"u8[3, 5]"}, {{"format", std::string("e4m3")}}},
                     {{"u8[S, 7]", "f32[7]"}, {{"format", std::string("e5m2")}, {"to", DType::kF16}}},
                     {{"u8[2, 37]", "u8[2, 3]"},
                      {{"format", std::string("e2m1")}, {"block", int64_t{16}}, {"scale_format", std::string("e4m3")}}},
                     {{"u8[17]", "f64[]"}, {{"format", std::string("e2m3")}, {"to", DType::kF64}}},
                     {{"u8[S]"}, {{"format", std::string("e3m2")}, {"to", DType::kBF16}}}},
    });
  }();
  return *op;
}

}  // namespace quern::ir
