#include "ir/residual_norm.h"

#include <cmath>

#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

bool HasBias(const Attributes& attributes) { return attributes.Bool("has_bias"); }

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const int bias = HasBias(context.attributes) ? 1 : 0, count = static_cast<int>(context.operands.size());
  if (count < 3 + bias || count > 4 + bias) {
    return context.Error(DiagnosticCode::kInputCount, "has_bias",
                         absl::StrFormat("%d or %d operands", 3 + bias, 4 + bias), absl::StrCat(count));
  }
  if (x.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  if (!context.Equal(x.dims, context.operands[1].dims)) return context.ShapeError(1, ToString(x.dims));
  const char* const names[] = {"bias", "gamma", "beta"};
  const std::vector<Extent> row = {x.dims.back()};
  for (int i = 2; i < count; ++i) {
    if (context.Equal(context.operands[i].dims, row)) continue;
    return context.Error(DiagnosticCode::kShapeMismatch, names[i - 1 - bias], ToString(row),
                         context.operands[i].ToString());
  }
  return std::vector<TensorType>{x, x};
}

// Halves are rounded where they are stored: the norm is one of the sum before that.
template <bool kCentred>
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  Value sum = e.Add("Add", {e.Wide(inputs[0]), e.Wide(inputs[1])});
  const bool bias = HasBias(node.attributes);
  if (bias) sum = e.Add("Add", {sum, e.Wide(inputs[2])});
  std::vector<Value> operands = {sum};
  for (const Value& affine : inputs.subspan(bias ? 3 : 2)) operands.push_back(e.Wide(affine));
  const Value y =
      e.Add(kCentred ? "LayerNorm" : "RmsNorm", std::move(operands), {{"eps", node.attributes.Float("eps")}});
  return e.Finish({e.Stored(y, node.results[0].dtype), e.Stored(sum, node.results[1].dtype)});
}

// The sum of all that is added to x, or of their sizes.
RefTensor Added(const RefContext& context, bool sizes) {
  const auto of = [&](double value) { return sizes ? std::fabs(value) : value; };
  RefTensor sum = *context.operands[0];
  if (sum.dtype != DType::kF64) sum.dtype = DType::kF32;
  for (size_t i = 0; i < sum.data.size(); ++i) {
    sum.data[i] = of(sum.data[i]) + of(context.operands[1]->data[i]);
    if (HasBias(context.node.attributes))
      sum.data[i] += of(context.operands[2]->data[i % context.operands[2]->data.size()]);
  }
  return sum;
}

std::span<const RefTensor* const> AffineOf(const RefContext& context) {
  return std::span(context.operands).subspan(HasBias(context.node.attributes) ? 3 : 2);
}

template <bool kCentred>
Status Reference(RefContext& context) {
  const RefTensor sum = Added(context, /*sizes=*/false);
  RefTensor& given = context.results[1];
  for (size_t i = 0; i < sum.data.size(); ++i) given.data[i] = RoundTo(given.dtype, sum.data[i]);
  ReferenceNorm(sum, AffineOf(context), kCentred, context.node.attributes.Float("eps"), context.results[0]);
  return absl::OkStatus();
}

// Where terms of the sum cancel, what is left of them has their roundings.
template <bool kCentred>
Status Magnitude(RefContext& context) {
  const RefTensor sum = Added(context, /*sizes=*/false), sizes = Added(context, /*sizes=*/true);
  MagnitudeOfNorm(sum, AffineOf(context), kCentred, context.node.attributes.Float("eps"), context.results[0]);
  std::vector<double>& y = context.results[0].data;
  for (size_t i = 0; i < y.size(); ++i) {
    const double least = std::fabs(sum.data[i]) + 1e-3 * sizes.data[i];
    if (least > 0) y[i] *= std::max(1.0, std::min(1e3, sizes.data[i] / least));
  }
  context.results[1].data = sizes.data;
  return absl::OkStatus();
}

}  // namespace

const OpDef* ResidualNorm(const char* name, const char* doc, bool centred) {
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[.., N]"},
                   {.name = "residual", .kind = OperandKind::kFloat, .shape = "as x"},
                   {.name = "gamma",
                    .kind = OperandKind::kFloat,
                    .shape = "[N]; with has_bias the bias stands before it"},
                   {.name = "beta", .kind = OperandKind::kFloat, .shape = "[N]", .optional = true},
                   {.name = "more", .kind = OperandKind::kFloat, .shape = "[N], with has_bias", .optional = true}},
      .attributes = {{.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5},
                     {.name = "has_bias",
                      .kind = AttrKind::kBool,
                      .default_value = false,
                      .doc = "operands are x, residual, bias, gamma, beta?"}},
      .infer = Infer,
      .reference = centred ? Reference<true> : Reference<false>,
      .expand = centred ? Expand<true> : Expand<false>,
      .rtol = centred ? 2e-5 : 1e-5,
      .magnitude = centred ? Magnitude<true> : Magnitude<false>,
      .examples = {{{"f32[2, 3]", "f32[2, 3]", "f32[3]"}},
                   {{"f32[S, 7]", "f32[S, 7]", "f32[7]", "f32[7]"}},
                   {{"f32[2, 5, 17]", "f32[2, 5, 17]", "f32[17]", "f32[17]"}, {{"has_bias", true}}},
                   {{"f16[S, 11]", "f16[S, 11]", "f16[11]", "f16[11]", "f16[11]"}, {{"has_bias", true}}}},
  });
}

}  // namespace quern::ir
