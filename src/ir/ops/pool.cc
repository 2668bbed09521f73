// Pool: the maximum of every window of x [N, C, s..], or of floats the mean. Padding is no element: it never wins a
// maximum, and a mean is over the elements that exist, or with `count_include_pad` over the padding too. With `ceil` a
// window may reach past the padding, whose places count for nothing, but not begin behind the last element and its
// padding. With `channels_last` x is [N, s.., C].

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/divide.h"
#include "ir/composite.h"
#include "ir/monotone.h"
#include "ir/shape.h"
#include "ir/window.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (!IsFloat(x.dtype) && context.attributes.String("kind") != "max")
    return context.DTypeError(0, "a float for a mean");
  if (x.rank() < 3 || x.rank() > 5) return context.ShapeError(0, "[N, C, s..] of 1 to 3 spatial dimensions");
  const ImageAxes axes(context.attributes, x.dims.size());
  const std::span<const Extent> dims = std::span(x.dims).subspan(axes.spatial, x.dims.size() - 2);
  const Window window = WindowOf(context.attributes, context.attributes.Ints("kernel"));
  QUERN_ASSIGN(std::vector<Extent> places, WindowPlaces(context, 0, dims, window));
  for (size_t d = 0; d < dims.size(); ++d) {
    // A place in every window that is an element.
    if (window.low[d] >= window.Span(d) || window.high[d] >= window.Span(d))
      return context.AttributeError("pads", "fewer than what a window spans");
    if (!context.attributes.Bool("ceil")) continue;
    if (!dims[d].is_constant()) return context.UnsupportedError(0, "extents that are known, with ceil");
    const int64_t size = dims[d].constant() + window.low[d], stride = window.strides[d];
    int64_t count = CeilDiv(size + window.high[d] - window.Span(d), stride) + 1;
    if ((count - 1) * stride >= size) --count;
    places[d] = Extent(count);
  }
  TensorType result = x;
  std::copy(places.begin(), places.end(), result.dims.begin() + static_cast<int64_t>(axes.spatial));
  return std::vector<TensorType>{std::move(result)};
}

std::optional<Attributes> ChannelsLast(const Node& node, std::span<const TensorType> operands) {
  if (node.attributes.Bool("channels_last") || operands[0].rank() - 2 > kMostSpatialBesideChannels) return std::nullopt;
  return WithChannelsLast(node);
}

// What no element is less than.
double LowestOf(DType dtype) {
  return IsInteger(dtype) ? static_cast<double>(Lowest(dtype)) : -std::numeric_limits<double>::infinity();
}

// The window along dimension d alone.
Window Along(const Window& window, size_t d) {
  const std::vector<int64_t> ones(window.kernel.size(), 1), zeros(window.kernel.size(), 0);
  Window one = {ones, ones, ones, zeros, zeros};
  one.kernel[d] = window.kernel[d];
  one.strides[d] = window.strides[d];
  one.dilations[d] = window.dilations[d];
  one.low[d] = window.low[d];
  one.high[d] = window.high[d];
  return one;
}

// Whether windows are folded one dimension after the other, outer ones first: k + k steps an element where windows have
// k k, but what is between goes to memory and back, and has every place of the dimensions that are to come.
bool ByDimension(const Window& window, std::span<const Extent> dims, std::span<const Extent> places) {
  constexpr double kOfMemory = 8;  // steps that take as long as writing an element and reading it again
  double together = 1, apart = kOfMemory * static_cast<double>(window.kernel.size() - 1), rest = 1;
  for (size_t d = window.kernel.size(); d-- > 0;) {
    together *= static_cast<double>(window.kernel[d]);
    apart += static_cast<double>(window.kernel[d]) * rest;
    rest *= dims[d].is_constant() ? static_cast<double>(dims[d].constant()) / static_cast<double>(places[d].constant())
                                  : static_cast<double>(window.strides[d]);
  }
  return apart < together;
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType x = graph.type(inputs[0]);
  const std::vector<Extent>& dims = node.results[0].dims;
  const size_t n = dims.size() - 2;
  const bool last = node.attributes.Bool("channels_last");
  if (last && n > kMostSpatialBesideChannels) {
    Attributes first = node.attributes;
    first.Set("channels_last", false);
    return e.Finish({ChannelsToLast(e, e.Add("Pool", {ChannelsToFirst(e, inputs[0])}, std::move(first)))});
  }
  const auto at = static_cast<int64_t>(ImageAxes(node.attributes, dims.size()).spatial),
             end = at + static_cast<int64_t>(n);
  const std::vector<Extent> spatial(x.dims.begin() + at, x.dims.begin() + end),
      places(dims.begin() + at, dims.begin() + end);
  const Window given = WindowOf(node.attributes, node.attributes.Ints("kernel")),
               window = WindowReaching(node.attributes, spatial, places);
  // Folds every window of `value`, whose last dimensions are spatial, or [1, s.., 1] with channels last, to the
  // places that there are along dimensions from `first` to before `behind`.
  const auto fold = [&](Value value, const Window& by, const char* op, double fill, size_t first, size_t behind) {
    const auto leading = last ? at : static_cast<int64_t>(e.type(value).dims.size() - n);
    const Value windows = last ? WindowsBesideChannels(e, value, by, fill) : Windows(e, value, by, fill);
    std::vector<int64_t> axes;
    for (size_t d = 0; d < n; ++d) axes.push_back(leading + static_cast<int64_t>(d));
    value = e.Add("Reduce", {windows}, {{"op", std::string(op)}, {"axes", axes}, {"keep_dim", false}});
    for (size_t d = first; d < behind; ++d) {
      value = e.Add("Narrow", {value},
                    {{"axis", leading + static_cast<int64_t>(d)},
                     {"start", std::vector<Extent>{Extent(0)}},
                     {"length", std::vector<Extent>{places[d]}}});
    }
    return value;
  };
  const bool by_dimension = ByDimension(window, spatial, places);
  const auto folded = [&](Value value, const Window& by, const char* op, double fill) {
    if (!by_dimension) return fold(value, by, op, fill, 0, n);
    for (size_t d = 0; d < n; ++d) value = fold(value, Along(by, d), op, fill, d, d + 1);
    return value;
  };
  if (node.attributes.String("kind") == "max") return e.Finish({folded(inputs[0], window, "max", LowestOf(x.dtype))});
  const Value wide = e.Wide(inputs[0]);
  const Value sum = folded(wide, window, "sum", 0);
  const DType dtype = e.type(wide).dtype;
  // How many places each window has: of ones, where elements count, and where padding counts as well.
  std::vector<Extent> counted = spatial;
  Window behind = window;
  for (size_t d = 0; d < n && node.attributes.Bool("count_include_pad"); ++d) {
    counted[d] = counted[d] + Extent(given.low[d] + given.high[d]);
    behind.low[d] = 0;
    behind.high[d] = std::max<int64_t>(0, window.high[d] - given.high[d]);
  }
  if (last) {
    counted.insert(counted.begin(), Extent(1));
    counted.push_back(Extent(1));
  }
  double all = 1;
  for (const int64_t size : window.kernel) all *= static_cast<double>(size);
  const Value count = behind.IsPadded()
                          ? folded(e.Add("Expand", {e.Scalar(1, dtype)}, {{"shape", counted}}), behind, "sum", 0)
                          : e.Scalar(all, dtype);
  return e.Finish({e.Stored(e.Add("Div", {sum, count}), node.results[0].dtype)});
}

// Calls `take` with where the elements of every window of y are in x, and how many places the window has.
template <typename Take>
void ForEachElement(const RefContext& context, const Take& take) {
  const RefTensor &x = *context.operands[0], &y = context.results[0];
  const Attributes& attributes = context.node.attributes;
  const Window window = WindowOf(attributes, attributes.Ints("kernel"));
  const size_t rank = x.dims.size();
  const ImageAxes axes(attributes, rank);
  std::vector<int64_t> index(rank), place(rank);
  const int64_t elements = y.elements();
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    int64_t total = 1;
    for (int64_t k : window.kernel) total *= k;
    std::vector<int64_t> k(window.kernel.size());
    std::vector<int64_t> inside;
    int64_t padded = 0;
    for (int64_t t = 0; t < total; ++t, NextIndex(window.kernel, k)) {
      place[0] = index[0];
      place[axes.channels] = index[axes.channels];
      bool exists = true, counts = true;
      for (size_t d = 0; d + 2 < rank; ++d) {
        const int64_t low = window.low[d], high = window.high[d];
        int64_t& along = place[axes.spatial + d];
        along = index[axes.spatial + d] * window.strides[d] + k[d] * window.dilations[d] - low;
        exists &= along >= 0 && along < x.dims[axes.spatial + d];
        counts &= along >= -low && along < x.dims[axes.spatial + d] + high;
      }
      if (exists) inside.push_back(x.Offset(place));
      padded += counts ? 1 : 0;
    }
    take(at, inside, attributes.Bool("count_include_pad") ? padded : static_cast<int64_t>(inside.size()));
  }
}

Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  const RefTensor& from = *context.operands[0];
  if (IsInteger(y.dtype)) {
    ForEachElement(context, [&](int64_t at, const std::vector<int64_t>& elements, int64_t) {
      Wide result = Lowest(y.dtype);
      for (const int64_t element : elements) result = std::max(result, from.Integer(element));
      y.SetInteger(at, result);
    });
    return absl::OkStatus();
  }
  const bool max = context.node.attributes.String("kind") == "max";
  ForEachElement(context, [&](int64_t at, const std::vector<int64_t>& elements, int64_t count) {
    double result = max ? -std::numeric_limits<double>::infinity() : 0;
    for (const int64_t element : elements) {
      const double x = from.data[element];
      if (!max)
        result += x;
      else if (!(x <= result))  // a NaN stays
        result = std::isnan(result) ? result : x;
    }
    y.data[at] = RoundTo(y.dtype, max ? result : result / static_cast<double>(count));
  });
  return absl::OkStatus();
}

Status Magnitude(RefContext& context) {
  RefTensor& y = context.results[0];
  const RefTensor& from = *context.operands[0];
  const bool max = context.node.attributes.String("kind") == "max";
  ForEachElement(context, [&](int64_t at, const std::vector<int64_t>& elements, int64_t count) {
    double result = 0;
    for (const int64_t element : elements) {
      const double size = std::fabs(from.data[element]);
      result = max ? std::max(result, size) : result + size;
    }
    y.data[at] = max ? result : result / static_cast<double>(count);
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_pool() {
  static const OpDef* const op = Make({
      .name = "Pool",
      .doc = "the maximum or mean of every window; padding is no element",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kNumeric, .shape = "[N, C, s..] or [N, s.., C]"}},
      .attributes = WindowAttributes(
          {{.name = "kind", .kind = AttrKind::kString, .choices = {"max", "mean"}},
           {.name = "kernel", .kind = AttrKind::kInts},
           {.name = "ceil", .kind = AttrKind::kBool, .default_value = false, .doc = "windows may reach past the end"},
           {.name = "count_include_pad", .kind = AttrKind::kBool, .default_value = false},
           ChannelsLastAttribute()}),
      .infer = Infer,
      .channels_last = ChannelsLast,
      .reference = Reference,
      .expand = Expand,
      .rtol = 2e-6,
      .magnitude = Magnitude,
      .examples = {{{"f32[2, 3, 9]"}, {{"kind", std::string("max")}, {"kernel", std::vector<int64_t>{2}}}},
                   {{"i8[2, 3, 9]"}, {{"kind", std::string("max")}, {"kernel", std::vector<int64_t>{2}}}}},
  });
  return *op;
}

bool IsMaxPool(const Node& node) { return node.op == &Op_pool() && node.attributes.String("kind") == "max"; }

}  // namespace quern::ir
