// Conv: correlation of x [N, C, s..] with w [M, C / groups, k..], 1 to 3 spatial dimensions, and a bias [M]:
//
//   y[n, m, o..] = b[m] + sum over c, k.. of x[n, g C/groups + c, o * stride + k * dilation - low padding] w[m, c, k..]
//
// where g is the group of m, and x outside of its extents is 0, or `fill` where x and w are bytes, i8 and u8 in any
// pair. Whether a weight that is not finite meets such a 0 is left open. Of bytes the result is i32, which wraps, and
// there is no bias. It is a product of w with the windows of x, which the kernels of products read from x itself. With
// `channels_last` x is [N, s.., C] and y [N, o.., M]: rows of windows are multiplied by w, and one channel by itself is
// a sum over its windows.

#include <algorithm>
#include <cmath>

#include "ir/composite.h"
#include "ir/product.h"
#include "ir/shape.h"
#include "ir/sum_products.h"
#include "ir/window.h"

namespace quern::ir {
namespace {

// A byte where x is bytes, else 0: no gradient asks what else floats are padded with.
Status CheckFill(const InferContext& context) {
  const double fill = context.attributes.Float("fill");
  const DType dtype = context.operands[0].dtype;
  if (!IsByte(dtype)) return fill == 0 ? absl::OkStatus() : context.AttributeError("fill", "0 beside floats");
  if (fill == std::trunc(fill) && fill >= static_cast<double>(Lowest(dtype)) &&
      fill <= static_cast<double>(Highest(dtype)))
    return absl::OkStatus();
  return context.AttributeError("fill", absl::StrCat("one of ", std::string(Name(dtype))));
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &w = context.operands[1];
  if (!IsFloat(x.dtype) && !IsByte(x.dtype)) return context.DTypeError(0, "a float, i8 or u8");
  if (IsByte(x.dtype) ? !IsByte(w.dtype) : w.dtype != x.dtype)
    return context.DTypeError(1, IsByte(x.dtype) ? "i8 or u8" : std::string(Name(x.dtype)));
  if (context.operands.size() > 2 && context.operands[2].dtype != x.dtype)
    return context.DTypeError(2, std::string(Name(x.dtype)));
  if (context.operands.size() > 2 && IsByte(x.dtype)) return context.UnsupportedError(2, "no bias of bytes");
  QUERN_RETURN_IF_ERROR(CheckFill(context));
  QUERN_RETURN_IF_ERROR(CheckConvolution(context, "[M, C / groups, k..]", w.rank() > 0 ? w.dims[0] : Extent(0)));
  const int64_t groups = context.attributes.Int("groups");
  const ImageAxes axes(context.attributes, x.dims.size());
  const Extent& channels = x.dims[axes.channels];
  if (!context.Equal(channels, w.dims[1] * Extent(groups)))
    return context.ShapeError(1, absl::StrFormat("C / groups of %s channels in dimension 1", channels.ToString()));
  const std::span<const Extent> spatial = std::span(x.dims).subspan(axes.spatial, x.dims.size() - 2);
  QUERN_ASSIGN(const std::vector<Extent> places, WindowPlaces(context, 0, spatial, WindowOf(context.attributes, w)));
  TensorType result{ProductType(x.dtype, w.dtype), x.dims};
  result.dims[axes.channels] = w.dims[0];
  std::copy(places.begin(), places.end(), result.dims.begin() + static_cast<int64_t>(axes.spatial));
  return std::vector<TensorType>{std::move(result)};
}

// Whether every channel is convolved by itself, to one channel.
bool IsByChannel(const Attributes& attributes, const TensorType& w) {
  return w.dims[1] == Extent(1) && w.dims[0] == Extent(attributes.Int("groups"));
}

// Which convolutions have a form of their own with channels last: those whose windows have at most 8 dimensions, and
// rows of windows that have elements.
bool HasChannelsLast(const Attributes& attributes, const TensorType& x, const TensorType& w) {
  if (x.dtype == DType::kF64) return false;
  if (IsByChannel(attributes, w)) return w.rank() - 2 <= kMostSpatialBesideChannels;
  const Window window = WindowOf(attributes, w);
  const bool windows =
      w.dims[1] != Extent(0) && std::ranges::none_of(window.kernel, [](int64_t size) { return size == 0; });
  const bool few_dimensions = window.dilations.back() == 1 || w.rank() - 2 <= kMostSpatialBesideChannels;
  return attributes.Int("groups") == 1 && few_dimensions && windows;
}

std::optional<Attributes> ChannelsLast(const Node& node, std::span<const TensorType> operands) {
  if (node.attributes.Bool("channels_last") || !HasChannelsLast(node.attributes, operands[0], operands[1]))
    return std::nullopt;
  return WithChannelsLast(node);
}

// Halves as f32; bytes as they are.
Value Widened(Expansion& e, Value x) { return e.ok() && IsByte(e.type(x).dtype) ? x : e.Wide(x); }

// Rows of windows by rows of w, or for every channel by itself the sum over its windows.
StatusOr<std::vector<Value>> ExpandChannelsLast(Expansion& e, const Node& node, std::span<const Value> inputs) {
  const TensorType w = e.type(inputs[1]), y = node.results[0];
  const auto rank = static_cast<int64_t>(w.dims.size()), spatial = rank - 2;
  const Window window = WindowOf(node.attributes, w);
  const double fill = node.attributes.Float("fill");
  if (!HasChannelsLast(node.attributes, e.type(inputs[0]), w)) {
    Attributes first = node.attributes;
    first.Set("channels_last", false);
    std::vector<Value> operands(inputs.begin(), inputs.end());
    operands[0] = ChannelsToFirst(e, inputs[0]);
    return e.Finish({ChannelsToLast(e, e.Add("Conv", std::move(operands), std::move(first)))});
  }
  std::vector<Extent> channels_known = e.type(inputs[0]).dims;
  channels_known.back() = w.dims[1] * Extent(node.attributes.Int("groups"));
  // Halves are windows of halves: an image is read where it lies.
  const Value x = e.Sized(inputs[0], std::move(channels_known)), weights = Widened(e, inputs[1]);
  std::vector<int64_t> perm = {0};  // [M, k.., C]
  for (int64_t d = 2; d < rank; ++d) perm.push_back(d);
  perm.push_back(1);
  // Sums of so few products of bytes are exact in f32.
  constexpr int64_t kExact = (1 << 24) / (255 * 255);
  int64_t terms_of_channel = 1;
  for (const int64_t size : window.kernel) terms_of_channel *= size;
  const auto factor = [&](Value bytes) {
    if (!e.ok() || !IsByte(e.type(bytes).dtype)) return e.Wide(bytes);
    return e.Stored(bytes, terms_of_channel <= kExact ? DType::kF32 : DType::kI32);
  };
  Value result;
  if (IsByChannel(node.attributes, w)) {
    std::rotate(perm.begin(), perm.begin() + 1, perm.end());  // [k.., 1, M]
    std::vector<Extent> by_channel(w.dims.begin() + 2, w.dims.end());
    by_channel.insert(by_channel.end(), static_cast<size_t>(spatial), Extent(1));
    by_channel.push_back(w.dims[0]);
    const Value factors = e.Sized(e.Add("Transpose", {weights}, {{"perm", perm}}), std::move(by_channel));
    const Value terms = e.Add("Mul", {factor(WindowsBesideChannels(e, x, window, fill)), factor(factors)});
    std::vector<int64_t> axes;
    for (int64_t d = 0; d < spatial; ++d) axes.push_back(1 + d);
    result = e.Add("Reduce", {terms}, {{"op", "sum"}, {"axes", axes}, {"keep_dim", false}});
    if (IsByte(w.dtype)) result = e.Stored(result, DType::kI32);
  } else {
    Extent k = w.dims[1];
    for (int64_t d = 2; d < rank; ++d) k = k * w.dims[d];
    const Value rows = e.Sized(e.Add("Transpose", {weights}, {{"perm", perm}}), {w.dims[0], k});
    const Value windows = window.IsTrivial() ? x : WindowsOfChannels(e, x, window, fill);
    result = e.Sized(e.Add("MatMul", {Widened(e, windows), rows}, {{"transpose_b", true}}), y.dims);
  }
  if (inputs.size() > 2) result = e.Add("Add", {result, e.Wide(inputs[2])});
  return e.Finish({e.Stored(result, y.dtype)});
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  if (node.attributes.Bool("channels_last")) return ExpandChannelsLast(e, node, inputs);
  const Extent groups(node.attributes.Int("groups"));
  const TensorType w = graph.type(inputs[1]);
  const std::vector<Extent>& dims = node.results[0].dims;
  const Window window = WindowOf(node.attributes, w);
  std::vector<Extent> channels_known = graph.type(inputs[0]).dims;
  channels_known[1] = w.dims[1] * groups;
  // Halves are rounded once, behind the bias.
  Value x = Widened(e, e.Sized(inputs[0], std::move(channels_known)));
  const Value weights = Widened(e, inputs[1]);
  if (!window.IsTrivial()) x = Windows(e, x, window, node.attributes.Float("fill"));
  Extent places(1), k = w.dims[1], rows = *w.dims[0].DividedBy(groups);
  for (size_t d = 2; d < dims.size(); ++d) {
    places = places * dims[d];
    k = k * w.dims[d];
  }
  const Value left = groups == Extent(1) ? e.Sized(weights, {rows, k}) : e.Sized(weights, {groups, rows, k});
  const Value right = groups == Extent(1) ? e.Sized(x, {dims[0], k, places}) : e.Sized(x, {dims[0], groups, k, places});
  Value y = e.Sized(e.Add("MatMul", {left, right}, {{"transpose_b", false}}), dims);
  if (inputs.size() > 2) y = e.Add("Add", {y, BiasOfChannels(e, inputs[2], static_cast<int>(dims.size()))});
  return e.Finish({e.Stored(y, node.results[0].dtype)});
}

// Calls visit(where a result is, its channel) and then, for each of its terms, term(where its factors are), -1 for a
// place outside of x.
template <typename Visit, typename Term>
void ForEachTerm(const RefContext& context, const Visit& visit, const Term& term) {
  const RefTensor &x = *context.operands[0], &w = *context.operands[1];
  const RefTensor& y = context.results[0];
  const Window window = WindowOf(context.node.attributes, std::span(w.dims).subspan(2));
  const size_t rank = x.dims.size();
  const ImageAxes axes(context.node.attributes, rank);
  const int64_t rows = w.dims[0] / context.node.attributes.Int("groups"), channels = w.dims[1];
  std::vector<int64_t> index(rank), at_x(rank), at_w(rank);
  const std::vector<int64_t> terms(w.dims.begin() + 1, w.dims.end());
  const int64_t count = w.elements() / std::max<int64_t>(1, w.dims[0]), elements = y.elements();
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    visit(at, index[axes.channels]);
    std::vector<int64_t> k(terms.size());
    for (int64_t i = 0; i < count; ++i, NextIndex(terms, k)) {
      at_x[0] = index[0];
      at_x[axes.channels] = index[axes.channels] / rows * channels + k[0];
      at_w[0] = index[axes.channels];
      at_w[1] = k[0];
      bool inside = true;
      for (size_t d = 2; d < rank; ++d) {
        at_w[d] = k[d - 1];
        const size_t s = axes.spatial + d - 2;
        at_x[s] = index[s] * window.strides[d - 2] + k[d - 1] * window.dilations[d - 2] - window.low[d - 2];
        inside &= at_x[s] >= 0 && at_x[s] < x.dims[s];
      }
      term(at, inside ? x.Offset(at_x) : -1, w.Offset(at_w));
    }
  }
}

struct Sums {
  template <typename Term>
  static void Run(RefContext& context, const Term& term) {
    const RefTensor &x = *context.operands[0], &w = *context.operands[1];
    RefTensor& y = context.results[0];
    const RefTensor* bias = context.operands.size() > 2 ? context.operands[2] : nullptr;
    ForEachTerm(
        context, [&](int64_t at, int64_t channel) { y.data[at] = bias == nullptr ? 0 : term(bias->data[channel], 1); },
        [&](int64_t at, int64_t from, int64_t by) {
          if (from >= 0) y.data[at] += term(x.data[from], w.data[by]);
        });
    for (double& out : y.data) out = RoundTo(y.dtype, out);
  }
};

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &w = *context.operands[1];
  RefTensor& y = context.results[0];
  if (!IsInteger(y.dtype)) return ReferenceOfProducts<Sums>(context);
  const auto fill = static_cast<int64_t>(context.node.attributes.Float("fill"));
  ForEachTerm(
      context, [&](int64_t at, int64_t) { y.SetInteger(at, 0); },
      [&](int64_t at, int64_t from, int64_t by) {
        y.SetInteger(at, y.Integer(at) + Times(from < 0 ? Wide{fill} : x.Integer(from), w.Integer(by)));
      });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_conv() {
  static const OpDef* const op = Make({
      .name = "Conv",
      .doc = "correlation with windows of 1 to 3 spatial dimensions, in groups of channels",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kNumeric, .shape = "[N, C, s..] or [N, s.., C]"},
                   {.name = "w", .kind = OperandKind::kNumeric, .shape = "[M, C / groups, k..]", .own_dtype = true},
                   {.name = "b", .kind = OperandKind::kNumeric, .shape = "[M]", .optional = true}},
      .attributes = WindowAttributes({{.name = "groups", .kind = AttrKind::kInt, .default_value = int64_t{1}},
                                      {.name = "fill",
                                       .kind = AttrKind::kFloat,
                                       .default_value = 0.0,
                                       .doc = "x outside of its extents, of bytes"},
                                      ChannelsLastAttribute()}),
      .infer = Infer,
      .channels_last = ChannelsLast,
      .reference = Reference,
      .expand = Expand,
      .rtol = 2e-6,
      .magnitude =
          [](RefContext& context) {
            const Window window = WindowOf(context.node.attributes, std::span(context.operands[1]->dims).subspan(2));
            return MagnitudeBesidePadding<Sums>(context, {false, window.IsPadded()});
          },
      .onnx = "Conv",
      .examples = {{{"f32[2, 3, 9]", "f32[5, 3, 2]"}},
                   {{"u8[2, 3, 9]", "i8[5, 3, 2]"}, {{"pads", std::vector<int64_t>{1, 0}}, {"fill", 128.0}}}},
  });
  return *op;
}

const OpDef* FindConvolution() { return &Op_conv(); }

const OpDef& Op_fused_conv_bias_act();
bool IsConvolution(const Node& node) { return node.op == &Op_conv() || node.op == &Op_fused_conv_bias_act(); }

}  // namespace quern::ir
