#include "ir/norm_backward.h"

#include <cmath>

#include "ir/backward.h"
#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

int64_t FirstAxis(const Node& node, size_t rank) { return FromStart(node.attributes.Int("axis"), rank); }

// x without its mean, and 1 / sqrt of its mean square.
struct Normalised {
  Term centred, scale;
};
Normalised NormalOf(Expansion& e, const Node& node, Value x, const std::vector<int64_t>& axes, bool centres) {
  const Term wide = Term::Wide(e, x), centred = centres ? wide - wide.Mean(axes) : wide;
  return {centred, ((centred * centred).Mean(axes) + node.attributes.Float("eps")).Call("Rsqrt")};
}

template <bool kCentred>
StatusOr<std::vector<Value>> ExpandInput(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<int64_t> axes = NormAxes(node.attributes.Int("axis"), node.results[0].dims.size());
  const Normalised n = NormalOf(e, node, inputs[0], axes, kCentred);
  const Term normal = n.centred * n.scale, g = Term::Wide(e, inputs[1]) * Term::Wide(e, inputs[2]);
  const Term along = g - normal * (g * normal).Mean(axes);
  const Term dx = n.scale * (kCentred ? along - g.Mean(axes) : along);
  return e.Finish({e.Stored(dx.value, node.results[0].dtype)});
}

template <bool kCentred>
StatusOr<std::vector<Value>> ExpandGamma(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const size_t rank = graph.type(inputs[0]).dims.size();
  const Normalised n = NormalOf(e, node, inputs[0], NormAxes(node.attributes.Int("axis"), rank), kCentred);
  std::vector<int64_t> rows;
  for (int64_t d = 0; d < FirstAxis(node, rank); ++d) rows.push_back(d);
  const Term sum = (Term::Wide(e, inputs[1]) * n.centred * n.scale).Sum(rows);
  return e.Finish({e.Stored(sum.Sized(node.results[0].dims).value, node.results[0].dtype)});
}

// Calls `visit` with the elements of each row of x: where it begins, how many they are, what is normal, and the scale.
template <typename Visit>
void ForEachRow(const RefContext& context, bool centres, const Visit& visit) {
  const RefTensor& x = *context.operands[0];
  int64_t width = 1;
  for (size_t d = FirstAxis(context.node, x.dims.size()); d < x.dims.size(); ++d) width *= x.dims[d];
  const int64_t elements = x.elements();
  for (int64_t row = 0; width > 0 && row < elements; row += width) {
    const double n = static_cast<double>(width);
    double mean = 0, square = 0;
    for (int64_t i = row; centres && i < row + width; ++i) mean += x.data[i] / n;
    for (int64_t i = row; i < row + width; ++i) square += (x.data[i] - mean) * (x.data[i] - mean) / n;
    const double scale = 1 / std::sqrt(square + context.node.attributes.Float("eps"));
    std::vector<double> normal;
    for (int64_t i = row; i < row + width; ++i) normal.push_back((x.data[i] - mean) * scale);
    visit(row, width, normal, scale);
  }
}

template <bool kCentred>
Status ReferenceInput(RefContext& context) {
  const RefTensor &gamma = *context.operands[1], &dy = *context.operands[2];
  RefTensor& dx = context.results[0];
  ForEachRow(context, kCentred, [&](int64_t row, int64_t width, const std::vector<double>& normal, double scale) {
    double mean = 0, along = 0;
    for (int64_t c = 0; c < width; ++c) {
      const double g = gamma.data[c] * dy.data[row + c] / static_cast<double>(width);
      mean += kCentred ? g : 0;
      along += g * normal[c];
    }
    for (int64_t c = 0; c < width; ++c)
      dx.data[row + c] = RoundTo(dx.dtype, scale * (gamma.data[c] * dy.data[row + c] - mean - normal[c] * along));
  });
  return absl::OkStatus();
}

// Of the terms by their size; what is normal is off by the size of x and its mean beside the deviation.
template <bool kCentred>
Status MagnitudeInput(RefContext& context) {
  const RefTensor &x = *context.operands[0], &gamma = *context.operands[1], &dy = *context.operands[2];
  ForEachRow(context, kCentred, [&](int64_t row, int64_t width, const std::vector<double>& normal, double scale) {
    double mean = 0, largest = 1;
    for (int64_t c = 0; c < width; ++c) {
      mean += std::fabs(gamma.data[c] * dy.data[row + c]) / static_cast<double>(width);
      largest = std::max({largest, std::fabs(normal[c]), std::fabs(x.data[row + c]) * scale});
    }
    for (int64_t c = 0; c < width; ++c)
      context.results[0].data[row + c] =
          scale * (std::fabs(gamma.data[c] * dy.data[row + c]) + mean * (1 + 4 * largest * largest));
  });
  return absl::OkStatus();
}

template <bool kCentred, bool kSizes>
Status SumGamma(RefContext& context) {
  const RefTensor &x = *context.operands[0], &dy = *context.operands[1];
  RefTensor& sum = context.results[0];
  ForEachRow(context, kCentred, [&](int64_t row, int64_t width, const std::vector<double>& normal, double scale) {
    for (int64_t c = 0; c < width; ++c)
      sum.data[c] += kSizes
                         ? std::fabs(dy.data[row + c]) * (std::fabs(normal[c]) + 2 * std::fabs(x.data[row + c]) * scale)
                         : dy.data[row + c] * normal[c];
  });
  for (double& value : sum.data) value = kSizes ? value : RoundTo(sum.dtype, value);
  return absl::OkStatus();
}

StatusOr<std::vector<TensorType>> InferInput(const InferContext& context) {
  const TensorType& x = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  const std::vector<Extent> row(x.dims.begin() + axis, x.dims.end());
  if (!context.Equal(context.operands[1].dims, row)) return context.ShapeError(1, ToString(row));
  if (!context.Equal(context.operands[2].dims, x.dims)) return context.ShapeError(2, ToString(x.dims));
  return std::vector<TensorType>{x};
}

StatusOr<std::vector<TensorType>> InferGamma(const InferContext& context) {
  const TensorType& x = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  if (!context.Equal(context.operands[1].dims, x.dims)) return context.ShapeError(1, ToString(x.dims));
  return std::vector<TensorType>{{x.dtype, {x.dims.begin() + axis, x.dims.end()}}};
}

std::vector<AttrDef> NormAttributes() {
  return {{.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}, NormAxisAttribute()};
}

}  // namespace

const OpDef* NormBackwardInput(const char* name, const char* doc, bool centred) {
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[.., N..]"},
                   {.name = "gamma", .kind = OperandKind::kFloat, .shape = "[N..]"},
                   {.name = "dy", .kind = OperandKind::kFloat, .shape = "as x"}},
      .attributes = NormAttributes(),
      .infer = InferInput,
      .reference = centred ? ReferenceInput<true> : ReferenceInput<false>,
      .expand = centred ? ExpandInput<true> : ExpandInput<false>,
      .rtol = 2e-5,
      .magnitude = centred ? MagnitudeInput<true> : MagnitudeInput<false>,
      .examples = {{{"f32[3, 7]", "f32[7]", "f32[3, 7]"}},
                   {{"f32[S, 3, 5]", "f32[3, 5]", "f32[S, 3, 5]"}, {{"axis", int64_t{1}}}},
                   {{"f16[2, 17]", "f16[17]", "f16[2, 17]"}}},
  });
}

const OpDef* NormBackwardGamma(const char* name, const char* doc, bool centred) {
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[.., N..]"},
                   {.name = "dy", .kind = OperandKind::kFloat, .shape = "as x"}},
      .attributes = NormAttributes(),
      .infer = InferGamma,
      .reference = centred ? SumGamma<true, false> : SumGamma<false, false>,
      .expand = centred ? ExpandGamma<true> : ExpandGamma<false>,
      .rtol = 2e-5,
      .magnitude = centred ? SumGamma<true, true> : SumGamma<false, true>,
      .examples = {{{"f32[3, 7]", "f32[3, 7]"}},
                   {{"f32[S, 3, 5]", "f32[S, 3, 5]"}, {{"axis", int64_t{1}}}},
                   {{"f16[11, 5]", "f16[11, 5]"}}},
  });
}

}  // namespace quern::ir
