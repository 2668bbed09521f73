// FakeQuantize: x as the nearest of a few levels, clamp(round(x / s), -n, n) s, with n = 127, 7 or 1.
//
//   batch   s is the largest of |x| by n
//   ema     s is that the first time, as long as `state` is not positive; else decay state + (1 - decay) of it. It is
//           the second result, the next state.
//   fixed   s is `state`

#include <algorithm>
#include <cmath>

#include "ir/fake_quantise.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const std::string& mode = context.attributes.String("scale_mode");
  const size_t count = mode == "batch" ? 1 : 2;
  if (context.operands.size() != count)
    return context.Error(DiagnosticCode::kInputCount, "state", absl::StrFormat("%u operands", count),
                         absl::StrFormat("%u", context.operands.size()));
  QUERN_RETURN_IF_ERROR(CheckLevels(context, mode == "batch" ? -1 : 1, -1));
  if (mode == "ema") return std::vector<TensorType>{x, context.operands[1]};
  return std::vector<TensorType>{x};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType type = graph.type(inputs[0]);
  const Attributes& attributes = node.attributes;
  const std::string& mode = attributes.String("scale_mode");
  const Value x = e.Wide(inputs[0]);
  if (!e.ok()) return e.Finish({});
  const DType dtype = e.type(x).dtype;
  if (mode == "fixed") {
    const Value y = Levelled(e, x, UsableScale(e, inputs[1], type, attributes), attributes);
    return e.Finish({e.Stored(y, type.dtype)});
  }
  const Value largest = e.Reduced("max", e.Add("Abs", {x}), SharedAxes(type.dims.size(), attributes));
  Value scale = e.Add("Div", {largest, e.Scalar(LevelsOf(attributes), dtype)});
  scale = UsableScale(e, scale, type, attributes);
  if (mode == "ema") {
    const double decay = attributes.Float("decay");
    const Value state = e.Sized(inputs[1], ScaleBesides(type, attributes));
    const Value mixed = e.Add(
        "Add", {e.Add("Mul", {state, e.Scalar(decay, dtype)}), e.Add("Mul", {scale, e.Scalar(1 - decay, dtype)})});
    scale = e.Add("Where", {e.Add("Le", {state, e.Scalar(0, dtype)}), scale, mixed});
  }
  std::vector<Value> results = {e.Stored(Levelled(e, x, scale, attributes), type.dtype)};
  if (mode == "ema") results.push_back(e.Sized(scale, node.results[1].dims));
  return e.Finish(std::move(results));
}

// A number as kernels compute it: in f64, or in f32.
double In(DType dtype, double value) {
  return dtype == DType::kF64 ? value : static_cast<double>(static_cast<float>(value));
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const Attributes& attributes = context.node.attributes;
  const std::string& mode = attributes.String("scale_mode");
  const double levels = LevelsOf(attributes), decay = attributes.Float("decay");
  std::vector<double> scales;
  const auto scale_of = [&](int64_t s) -> double& {
    if (static_cast<size_t>(s) >= scales.size()) scales.resize(s + 1, -INFINITY);
    return scales[s];
  };
  if (mode == "ema" && context.results[1].elements() > 0) scale_of(context.results[1].elements() - 1);
  ForEachScaled(x, attributes, [&](int64_t at, int64_t s) {
    double& largest = scale_of(s);
    const double size = std::fabs(x.data[at]);
    if (std::isnan(size) || size > largest) largest = std::isnan(largest) ? largest : size;
  });
  for (size_t s = 0; s < scales.size(); ++s) {
    double& scale = scales[s];
    const double state = mode == "batch" ? 0 : context.operands[1]->data[s];
    scale = UsableScale(In(x.dtype, In(x.dtype, scale) / levels));
    if (mode == "ema" && !(state <= 0))
      scale = In(x.dtype,
                 In(x.dtype, In(x.dtype, state) * In(x.dtype, decay)) + In(x.dtype, scale * In(x.dtype, 1 - decay)));
    if (mode == "fixed") scale = UsableScale(state);
    if (mode == "ema") context.results[1].data[s] = scale;
  }
  ForEachScaled(x, attributes, [&](int64_t at, int64_t s) {
    y.data[at] = RoundTo(y.dtype, Levelled(x.dtype, x.data[at], scales[s], levels));
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_fake_quantize() {
  static const OpDef* const op = Make({
      .name = "FakeQuantize",
      .doc = "x as the nearest of a few levels, multiples of a scale",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat},
                   {.name = "state",
                    .kind = OperandKind::kFloat,
                    .shape = "[] or [axis of x], f32, of f64 f64; unless batch",
                    .optional = true,
                    .own_dtype = true}},
      .attributes = LevelAttributes({{.name = "scale_mode",
                                      .kind = AttrKind::kString,
                                      .default_value = std::string("batch"),
                                      .choices = {"batch", "ema", "fixed"}},
                                     {.name = "decay",
                                      .kind = AttrKind::kFloat,
                                      .default_value = 0.99,
                                      .doc = "ema: what is left of the state"}}),
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .examples = {{{"f32[3, 7]"}},
                   {{"f32[2, 5, 3]", "f32[5]"},
                    {{"axis", int64_t{1}}, {"bits", int64_t{4}}, {"scale_mode", std::string("fixed")}}},
                   {{"f16[S, 11]"}, {{"axis", int64_t{0}}, {"bits", int64_t{2}}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
