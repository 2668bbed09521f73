// QuantizeFloat: x / scale as the nearest float of 8, 6 or 4 bits, half to even, as its code in a u8. What is too large
// becomes the largest, or, where it does not saturate and the format has them, infinity or NaN. A NaN becomes the
// format's; in one that has none, -0.

#include <algorithm>
#include <cmath>

#include "ir/linear_quantise.h"
#include "ir/shape.h"
#include "ir/small_float.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  if (context.operands.size() > 1) {
    QUERN_RETURN_IF_ERROR(CheckScaleDType(context, 1));
    QUERN_RETURN_IF_ERROR(CheckScales(context));
  }
  return std::vector<TensorType>{{DType::kU8, context.operands[0].dims}};
}

// The exponent of the smallest number that has all bits of its mantissa.
int LeastExponent(const SmallFloat& format) { return 2 - (1 << (format.bits - 2 - format.mantissa)); }
// The code of what has no number.
int CodeOfNaN(const SmallFloat& format) { return format.nan >= 0 ? format.nan : format.codes() / 2; }
bool Saturates(const SmallFloat& format, const Attributes& attributes) {
  return attributes.Bool("saturate") || (format.nan < 0 && format.infinity < 0);
}

// The code of |x|: x is halved until it is below twice the smallest normal number, and each time the code grows by as
// many as there are mantissas; what is left is a multiple of the smallest number.
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const SmallFloat& format = FindSmallFloat(node.attributes.String("format"));
  const TensorType type = graph.type(inputs[0]);
  Value x = e.Wide(inputs[0]);
  if (!e.ok()) return e.Finish({});
  const DType dtype = e.type(x).dtype;
  const auto number = [&](double value) { return e.Scalar(value, dtype); };
  if (inputs.size() > 1)
    x = e.Add("Div", {x, ScaleOf(e, ScaleFloats(e, inputs[1], node.attributes, dtype), type, node.attributes)});
  const bool saturates = Saturates(format, node.attributes);
  const int least = LeastExponent(format);
  Value left = e.Add("Min", {e.Add("Abs", {x}), number(saturates ? format.largest : 2 * format.largest)});
  Value code = number(0);
  int most = 1;
  while (std::ldexp(1.0, least + 2 * most) <= 2 * format.largest) most *= 2;
  for (int halvings = most; halvings > 0; halvings /= 2) {
    const Value large = e.Add("Ge", {left, number(std::ldexp(1.0, least + halvings))});
    left = e.Add("Mul", {left, e.Add("Where", {large, number(std::ldexp(1.0, -halvings)), number(1)})});
    code = e.Add("Add", {code, e.Add("Where", {large, number(halvings << format.mantissa), number(0)})});
  }
  code = e.Add("Add", {code, e.Add("Round", {e.Add("Mul", {left, number(std::ldexp(1.0, format.mantissa - least))})})});
  if (!saturates) code = e.Add("Min", {code, number(format.infinity >= 0 ? format.infinity : format.nan)});
  const Value negative = e.Add("BitOr", {e.Add("Lt", {x, number(0)}), e.Add("Lt", {e.Add("Recip", {x}), number(0)})});
  code = e.Add("Add", {code, e.Add("Where", {negative, number(format.codes() / 2), number(0)})});
  code = e.Add("Where", {e.Add("IsNaN", {x}), number(CodeOfNaN(format)), code});
  return e.Finish({e.Stored(code, DType::kU8)});
}

int CodeOf(const SmallFloat& format, double x, bool saturates) {
  if (std::isnan(x)) return CodeOfNaN(format);
  const int sign = std::signbit(x) ? format.codes() / 2 : 0,
            numbers = format.infinity >= 0 ? format.infinity - 1 : format.last();
  x = std::min(std::fabs(x), 2 * format.largest);  // infinity is as far from every number
  int best = 0;
  for (int code = 1; code <= numbers; ++code) {
    const double off = std::fabs(ValueOf(format, code) - x), least = std::fabs(ValueOf(format, best) - x);
    if (off < least || (off == least && code % 2 == 0)) best = code;
  }
  // The number that would follow the largest is as far above it as the one before is below.
  const double step = ValueOf(format, numbers) - ValueOf(format, numbers - 1), end = format.largest + step / 2;
  const bool odd = numbers % 2 != 0;
  if (!saturates && (x > end || (x == end && odd))) best = format.infinity >= 0 ? format.infinity : format.nan;
  return sign + best;
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
    y.SetInteger(at, CodeOf(format, QuotientIn(x.dtype, x.data[at], by), Saturates(format, attributes)));
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_quantize_float() {
  static const OpDef* const op = [] {
    std::vector<AttrDef> attributes = ScaleAttributes();
    attributes.push_back({.name = "format", .kind = AttrKind::kString, .choices = SmallFloats()});
    attributes.push_back(ScaleFormat());
    attributes.push_back({.name = "saturate",
                          .kind = AttrKind::kBool,
                          .default_value = true,
                          .doc = "what is too large becomes the largest number"});
    return Make({
        .name = "QuantizeFloat",
        .doc = "codes of x / scale in floats of 8, 6 or 4 bits",
        .kind = OpKind::kComposite,
        .operands = {{.name = "x", .kind = OperandKind::kFloat},
                     {.name = "scale",
                      .shape = "[], [axis of x] or blocks of x; floats, or codes in u8",
                      .optional = true,
                      .own_dtype = true}},
        .attributes = std::move(attributes),
        .infer = Infer,
        .reference = Reference,
        .expand = Expand,
        .onnx = "QuantizeLinear",
        .examples = {{{"f32[3, 5]"}, {{"format", std::string("e4m3")}}},
                     {{"f16[S, 7]", "f32[7]"}, {{"format", std::string("e5m2")}, {"saturate", false}}},
                     {{"f64[2, 37]", "u8[2, 3]"},
                      {{"format", std::string("e2m1")}, {"block", int64_t{16}}, {"scale_format", std::string("e4m3")}}},
                     {{"f32[S, 17]", "f32[]"}, {{"format", std::string("e2m3")}}},
                     {{"bf16[17]"}, {{"format", std::string("e3m2")}}}},
        .jumps = true,
    });
  }();
  return *op;
}

}  // namespace quern::ir
