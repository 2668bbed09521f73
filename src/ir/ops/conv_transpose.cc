// ConvTranspose: the adjoint of Conv in x: x [N, C, s..] with w [C, M / groups, k..] and a bias [M]. Each element of x
// adds w, scaled by it, to a window of the result:
//
//   y[n, m, o..] = b[m] + sum over c, i.., k.. of x[n, c, i..] w[c, m, k..] at i stride + k dilation = o + padding
//
// Results whose o + padding leave the same rest r by the stride read every stride-th element of w, w[.., j stride + r],
// as a plain convolution does: w becomes `stride` sets of rows of one Conv, whose results are interleaved. Of small
// images it computes many results that only some of the sets need: there each set has a Conv of its own.

#include <algorithm>
#include <optional>

#include "base/divide.h"
#include "ir/composite.h"
#include "ir/shape.h"
#include "ir/sum_products.h"
#include "ir/window.h"

namespace quern::ir {
namespace {

std::vector<int64_t> OutputPadding(const Attributes& attributes, size_t spatial) {
  const std::vector<int64_t>& given = attributes.Ints("output_padding");
  return given.empty() ? std::vector<int64_t>(spatial, 0) : given;
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &w = context.operands[1];
  const Extent rows = (w.rank() > 1 ? w.dims[1] : Extent(0)) * Extent(context.attributes.Int("groups"));
  QUERN_RETURN_IF_ERROR(CheckConvolution(context, "[C, M / groups, k..]", rows));
  if (!context.Equal(x.dims[1], w.dims[0]))
    return context.ShapeError(1, absl::StrFormat("%s channels in dimension 0", x.dims[1].ToString()));
  const size_t spatial = x.dims.size() - 2;
  const Window window = WindowOf(context.attributes, w);
  QUERN_RETURN_IF_ERROR(CheckWindow(context, spatial, window));
  const std::vector<int64_t> more = OutputPadding(context.attributes, spatial);
  TensorType result{x.dtype, {x.dims[0], rows}};
  for (size_t d = 0; d < spatial; ++d) {
    if (more.size() != spatial || more[d] < 0 || more[d] >= std::max(window.strides[d], window.dilations[d]))
      return context.AttributeError("output_padding",
                                    absl::StrFormat("%d numbers below the larger of stride and dilation", spatial));
    const Extent extent = (x.dims[d + 2] - Extent(1)) * Extent(window.strides[d]) +
                          Extent(window.Span(d) + more[d] - window.low[d] - window.high[d]);
    if (!context.AtLeast(extent, Extent(1)))
      return context.ShapeError(0, "enough elements that a result is left between the pads");
    result.dims.push_back(extent);
  }
  return std::vector<TensorType>{std::move(result)};
}

// x with stride - 1 zeros behind each element, where both stride and dilation spread a window: a stride of 1 is left.
// So are the last strides that interleaving would have no dimensions for.
Value Spread(Expansion& e, Value x, int64_t groups, Window& window) {
  constexpr int64_t kMostInterleaved = 2;  // beside batch, group and row, and as many dimensions again
  int64_t interleaved = groups > 1 ? 0 : -1;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t stride = window.strides[d];
    if (stride == 1 || (window.dilations[d] == 1 && ++interleaved <= kMostInterleaved)) continue;
    std::vector<Extent> dims = e.type(x).dims;
    dims.insert(dims.begin() + static_cast<int64_t>(d) + 3, Extent(1));
    std::vector<int64_t> low(dims.size(), 0), high(dims.size(), 0);
    high[d + 3] = stride - 1;
    x = e.Add("Pad", {e.Sized(x, dims)}, {{"low", low}, {"high", high}});
    dims.erase(dims.begin() + static_cast<int64_t>(d) + 3);
    dims[d + 2] = dims[d + 2] * Extent(stride);
    x = e.Sized(x, std::move(dims));
    window.strides[d] = 1;
  }
  return x;
}

// Dimensions in their old order, and where each goes.
struct Moved {
  std::vector<Extent> dims;
  std::vector<int64_t> perm;

  int64_t Add(const Extent& extent) {
    dims.push_back(extent);
    return static_cast<int64_t>(dims.size()) - 1;
  }
};

// w [G Cg, Mg, k..] as that of a Conv, [G s.. Mg, Cg, j..], where k = j s + r: rows by r, j backwards.
Value Turned(Expansion& e, Value w, int64_t groups, const Window& window) {
  const std::vector<Extent> own = e.type(w).dims;
  const Extent channels = *own[0].DividedBy(Extent(groups));
  std::vector<Extent> result = {own[1] * Extent(groups), channels};
  std::vector<int64_t> high(own.size(), 0), backwards, last;
  Moved split;
  if (groups > 1) split.perm.push_back(split.Add(Extent(groups)));
  const int64_t c = split.Add(channels), m = split.Add(own[1]);
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t stride = window.strides[d], steps = CeilDiv(window.kernel[d], stride);
    high[d + 2] = steps * stride - window.kernel[d];
    backwards.push_back(split.Add(Extent(steps)));
    last.push_back(backwards.back());
    if (stride > 1) split.perm.push_back(split.Add(Extent(stride)));
    result[0] = result[0] * Extent(stride);
    result.push_back(Extent(steps));
  }
  split.perm.insert(split.perm.end(), {m, c});
  split.perm.insert(split.perm.end(), last.begin(), last.end());
  w = e.Sized(e.Add("Pad", {w}, {{"low", std::vector<int64_t>(own.size(), 0)}, {"high", high}}), split.dims);
  w = e.Add("Transpose", {e.Add("Reverse", {w}, {{"axes", backwards}})}, {{"perm", split.perm}});
  return e.Sized(w, std::move(result));
}

// [N, G s.. Mg, t..] as [N, M, t s..].
Value Interleaved(Expansion& e, Value z, int64_t groups, const Extent& rows, const Window& window) {
  const std::vector<Extent> own = e.type(z).dims;
  const size_t n = window.kernel.size();
  std::vector<Extent> result = {own[0], rows};
  std::vector<int64_t> behind(n, -1);
  Moved split;
  split.perm.push_back(split.Add(own[0]));
  if (groups > 1) split.perm.push_back(split.Add(Extent(groups)));
  for (size_t d = 0; d < n; ++d) {
    if (window.strides[d] > 1) behind[d] = split.Add(Extent(window.strides[d]));
  }
  split.perm.push_back(split.Add(*rows.DividedBy(Extent(groups))));
  for (size_t d = 0; d < n; ++d) {
    split.perm.push_back(split.Add(own[d + 2]));
    if (behind[d] >= 0) split.perm.push_back(behind[d]);
    result.push_back(own[d + 2] * Extent(window.strides[d]));
  }
  return e.Sized(e.Add("Transpose", {e.Sized(z, split.dims)}, {{"perm", split.perm}}), std::move(result));
}

// A set of rows that w becomes, along one dimension, and the padding of x before and behind what its Conv reads.
struct Phase {
  int64_t set, low, high;
};

// Those of the results o, o + stride, .. by o, where all have as many results and none of x lies outside of what they
// read. `behind`: results behind stride times the elements of x.
std::vector<Phase> Phases(int64_t stride, int64_t reach, int64_t low, int64_t behind) {
  std::vector<Phase> phases;
  if (behind % stride != 0) return {};
  for (int64_t o = 0; o < stride; ++o) {
    const int64_t ahead = reach - (o + low) / stride, after = behind / stride + reach - ahead;
    if (ahead < 0 || after < 0) return {};
    phases.push_back({(o + low) % stride, ahead, after});
  }
  return phases;
}

// [N, s.. M, t..] of one Conv for each set of rows, in the order of the results; nothing where one Conv for all of them
// does as well: it computes a tenth more at most, or images are not known.
std::optional<Value> BySets(Expansion& e, Value x, Value w, int64_t groups, std::span<const Extent> results,
                            const Window& window, const Window& plain) {
  constexpr double kMore = 1.1;
  const size_t n = window.kernel.size();
  double more = 1;
  int64_t sets = 1;
  std::vector<std::vector<Phase>> phases;
  for (size_t d = 0; d < n; ++d) {
    const Extent &image = e.type(x).dims[d + 2], &result = results[d + 2];
    if (!image.is_constant() || !result.is_constant() || window.dilations[d] != 1) return std::nullopt;
    const int64_t stride = window.strides[d], reach = plain.kernel[d] - 1,
                  computed = image.constant() + plain.low[d] + plain.high[d] - reach;
    more *= static_cast<double>(computed * stride) / static_cast<double>(result.constant());
    phases.push_back(Phases(stride, reach, window.low[d], result.constant() - stride * image.constant()));
    if (phases.back().empty()) return std::nullopt;
    sets *= stride;
  }
  if (groups != 1 || sets == 1 || more < kMore) return std::nullopt;
  const Extent rows = *e.type(w).dims[0].DividedBy(Extent(sets));
  std::vector<Value> all;
  for (int64_t at = 0; at < sets; ++at) {
    Window of = plain;
    int64_t set = 0, rest = at, below = sets;
    for (size_t d = 0; d < n; ++d) {
      below /= window.strides[d];
      const Phase& phase = phases[d][rest / below];
      rest %= below;
      set = set * window.strides[d] + phase.set;
      of.low[d] = phase.low, of.high[d] = phase.high;
    }
    const Value own = e.Add("Narrow", {w},
                            {{"axis", int64_t{0}},
                             {"start", std::vector<Extent>{rows * Extent(set)}},
                             {"length", std::vector<Extent>{rows}}});
    all.push_back(e.Add("Conv", {x, own}, AttributesOf(of)));
  }
  return e.Add("Concat", std::move(all), {{"axis", int64_t{1}}});
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const int64_t groups = node.attributes.Int("groups");
  const std::vector<Extent>& dims = node.results[0].dims;
  Window window = WindowOf(node.attributes, graph.type(inputs[1]));
  const std::vector<int64_t> more = OutputPadding(node.attributes, window.kernel.size());
  std::vector<Extent> known = graph.type(inputs[0]).dims;
  known[1] = graph.type(inputs[1]).dims[0];
  const Value x = Spread(e, e.Wide(e.Sized(inputs[0], std::move(known))), groups, window);
  const Value w = Turned(e, e.Wide(inputs[1]), groups, window);
  // What a Conv of stride 1 computes is what is needed, and few results before and after it.
  Window plain = window;
  std::vector<int64_t> before;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t stride = window.strides[d], dilation = window.dilations[d];
    plain.kernel[d] = CeilDiv(window.kernel[d], stride);
    plain.strides[d] = 1;
    const int64_t reach = dilation * (plain.kernel[d] - 1);
    plain.low[d] = std::max<int64_t>(0, reach - window.low[d] / stride);
    before.push_back(window.low[d] - stride * (reach - plain.low[d]));
    // Behind the last element of x, whose zeros stand for stride - 1 of them.
    const int64_t behind = dilation * (window.kernel[d] - 1) + more[d] - window.high[d];
    plain.high[d] = std::max<int64_t>(0, FloorDiv(behind, stride));
  }
  std::optional<Value> sets = e.ok() ? BySets(e, x, w, groups, dims, window, plain) : std::nullopt;
  Attributes attributes = AttributesOf(plain);
  attributes.Set("groups", groups);
  Value y = sets ? *sets : e.Add("Conv", {x, w}, std::move(attributes));
  if (!e.ok()) return e.Finish({});
  y = Interleaved(e, y, groups, dims[1], window);
  for (size_t d = 0; d < before.size() && !sets; ++d) {
    y = e.Add("Narrow", {y},
              {{"axis", static_cast<int64_t>(d) + 2},
               {"start", std::vector<Extent>{Extent(before[d])}},
               {"length", std::vector<Extent>{dims[d + 2]}}});
  }
  if (inputs.size() > 2) y = e.Add("Add", {y, BiasOfChannels(e, inputs[2], static_cast<int>(dims.size()))});
  return e.Finish({e.Stored(y, node.results[0].dtype)});
}

// Adds up `term` of every element of x with every element of w that it meets, where both end up in the result.
struct Sums {
  template <typename Term>
  static void Run(RefContext& context, const Term& term) {
    const RefTensor &x = *context.operands[0], &w = *context.operands[1];
    RefTensor& y = context.results[0];
    const RefTensor* bias = context.operands.size() > 2 ? context.operands[2] : nullptr;
    const Window window = WindowOf(context.node.attributes, std::span(w.dims).subspan(2));
    const size_t rank = x.dims.size();
    const int64_t groups = context.node.attributes.Int("groups"), rows = w.dims[1];
    std::vector<double> sums(y.data.size());
    std::vector<int64_t> index(rank), at_x(rank), at_w(rank);
    for (size_t i = 0; i < sums.size(); ++i, NextIndex(y.dims, index)) {
      if (bias != nullptr) sums[i] = term(bias->data[index[1]], 1);
    }
    const std::vector<int64_t> terms(w.dims.begin() + 1, w.dims.end());
    const int64_t count = w.elements() / std::max<int64_t>(1, w.dims[0]), elements = x.elements();
    for (int64_t i = 0; i < elements; ++i, NextIndex(x.dims, at_x)) {
      std::vector<int64_t> k(terms.size());
      for (int64_t t = 0; t < count; ++t, NextIndex(terms, k)) {
        at_w[0] = at_x[1];
        index[0] = at_x[0];
        index[1] = at_x[1] / (x.dims[1] / groups) * rows + k[0];
        at_w[1] = k[0];
        bool inside = true;
        for (size_t d = 2; d < rank; ++d) {
          at_w[d] = k[d - 1];
          index[d] = at_x[d] * window.strides[d - 2] + k[d - 1] * window.dilations[d - 2] - window.low[d - 2];
          inside &= index[d] >= 0 && index[d] < y.dims[d];
        }
        if (inside) sums[y.Offset(index)] += term(x.data[i], w.At(at_w));
      }
    }
    for (size_t i = 0; i < sums.size(); ++i) y.data[i] = RoundTo(y.dtype, sums[i]);
  }
};

}  // namespace

const OpDef& Op_conv_transpose() {
  static const OpDef* const op = Make({
      .name = "ConvTranspose",
      .doc = "every element of x adds w, scaled by it, to a window of the result",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[N, C, s..]"},
                   {.name = "w", .kind = OperandKind::kFloat, .shape = "[C, M / groups, k..]"},
                   {.name = "b", .kind = OperandKind::kFloat, .shape = "[M]", .optional = true}},
      .attributes = WindowAttributes({{.name = "groups", .kind = AttrKind::kInt, .default_value = int64_t{1}},
                                      {.name = "output_padding",
                                       .kind = AttrKind::kInts,
                                       .default_value = std::vector<int64_t>{},
                                       .doc = "more results behind the last, by dimension"}}),
      .infer = Infer,
      .reference = ReferenceOfProducts<Sums>,
      .expand = Expand,
      .rtol = 2e-6,
      .magnitude = [](RefContext& context) { return MagnitudeBesidePadding<Sums>(context, {true, true}); },
      .onnx = "ConvTranspose",
      .examples = {{{"f32[2, 3, 9]", "f32[3, 5, 2]"}}},
  });
  return *op;
}

}  // namespace quern::ir
