// QConv: a convolution of bytes, with zero points, that is bytes again: sat(round(mult (bias + sum)) + out_zp). Padding
// is x_zp, which counts as 0.

#include "ir/integer_product.h"
#include "ir/requantise.h"
#include "ir/shape.h"
#include "ir/window.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &w = context.operands[1];
  const int64_t groups = context.attributes.Int("groups");
  if (x.rank() < 3 || x.rank() > 5) return context.ShapeError(0, "[N, C, s..] of 1 to 3 spatial dimensions");
  if (w.rank() != x.rank()) return context.ShapeError(1, "[M, C / groups, k..]");
  for (const Extent& dim : w.dims) {
    if (!dim.is_constant()) return context.ShapeError(1, "[M, C / groups, k..] of known extents");
  }
  if (groups < 1 || w.dims[0].constant() % groups != 0)
    return context.AttributeError("groups", absl::StrFormat("a divisor of %s", w.dims[0].ToString()));
  if (!context.Equal(x.dims[1], w.dims[1] * Extent(groups)))
    return context.ShapeError(1, absl::StrFormat("C / groups of %s channels in dimension 1", x.dims[1].ToString()));
  QUERN_RETURN_IF_ERROR(CheckRequantised(context, w.dims[0]));
  const std::span<const Extent> spatial = std::span(x.dims).subspan(2);
  QUERN_ASSIGN(const std::vector<Extent> places, WindowPlaces(context, 0, spatial, WindowOf(context.attributes, w)));
  TensorType result{x.dtype, {x.dims[0], w.dims[0]}};
  result.dims.insert(result.dims.end(), places.begin(), places.end());
  return std::vector<TensorType>{std::move(result)};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType w = graph.type(inputs[1]);
  const std::vector<Extent>& dims = node.results[0].dims;
  const auto zero = [&](const char* name, DType dtype) { return KnownZero(e, node.attributes.Int(name), dtype); };
  const Value sum =
      ConvolutionOfBytes(e, inputs[0], zero("x_zp", graph.type(inputs[0]).dtype), inputs[1], zero("w_zp", w.dtype),
                         WindowOf(node.attributes, w), node.attributes.Int("groups"));
  std::vector<Extent> beside(dims.size() - 1, Extent(1));
  beside[0] = w.dims[0];
  return e.Finish({Requantised(e, node, sum, inputs, beside)});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &w = *context.operands[1];
  RefTensor& y = context.results[0];
  const Attributes& attributes = context.node.attributes;
  const Window window = WindowOf(attributes, std::span(w.dims).subspan(2));
  const int64_t rows = w.dims[0] / attributes.Int("groups"), x_zero = attributes.Int("x_zp"),
                w_zero = attributes.Int("w_zp"), elements = y.elements();
  std::vector<int64_t> index(y.dims.size()), terms = w.dims;
  terms[0] = 1;
  int64_t count = 1;
  for (const int64_t n : terms) count *= n;
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    int64_t sum = 0;
    std::vector<int64_t> k(terms.size()), from(x.dims.size()), weight;
    for (int64_t t = 0; t < count; ++t, NextIndex(terms, k)) {
      from[0] = index[0];
      from[1] = index[1] / rows * w.dims[1] + k[1];
      bool inside = true;
      for (size_t d = 2; d < from.size(); ++d) {
        from[d] = index[d] * window.strides[d - 2] + k[d] * window.dilations[d - 2] - window.low[d - 2];
        inside = inside && from[d] >= 0 && from[d] < x.dims[d];
      }
      weight = k;
      weight[0] = index[1];
      if (inside)
        sum += (static_cast<int64_t>(x.Integer(x.Offset(from))) - x_zero) *
               (static_cast<int64_t>(w.Integer(w.Offset(weight))) - w_zero);
    }
    y.SetInteger(at, Requantised(context, sum, index[1]));
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_q_conv() {
  static const OpDef* const op = Make({
      .name = "QConv",
      .doc = "a convolution of bytes with zero points, as bytes again",
      .kind = OpKind::kComposite,
      .operands = RequantiseOperands("[N, C, s..], i8 or u8", "[M, C / groups, k..], i8 or u8", "[M]"),
      .attributes = WindowAttributes(
          RequantiseAttributes({{.name = "groups", .kind = AttrKind::kInt, .default_value = int64_t{1}}})),
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .examples = {{{"i8[2, 3, 9]", "i8[5, 3, 2]", "i32[5]"},
                    {{"x_zp", int64_t{3}}, {"w_zp", int64_t{-2}}, {"out_zp", int64_t{1}}, {"mult", 0.02}}},
                   {{"u8[S, 4, 7, 5]", "i8[6, 2, 3, 3]", "i32[6]", "f32[6]"},
                    {{"x_zp", int64_t{128}},
                     {"groups", int64_t{2}},
                     {"strides", std::vector<int64_t>{2, 1}},
                     {"pads", std::vector<int64_t>{1, 1, 1, 0}}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
