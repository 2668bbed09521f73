// Resize: x with other sizes along some axes, by interpolation along each of them. Element o of a result lies at
//
//   half_pixel            (o + 1/2) in / out - 1/2         asymmetric       o in / out
//   pytorch_half_pixel    the same, or 0 where out is 1    align_corners    o (in - 1) / (out - 1), or 0
//
// of its operand. `nearest` takes the element that `nearest_mode` says, `linear` two and `cubic` four, in which those
// beyond an end are the last one. With `antialias` what has fewer elements than before takes all that its stretched
// kernel reaches, in proportion. As ONNX has it, of `sizes`.
//
// Each axis is a sum over gathers with constant indices and weights, so it is a map; where many elements join, a
// product with a matrix of weights.

#include <algorithm>
#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

constexpr int64_t kMostGathers = 12;  // elements that join, of a sum

struct Axis {
  int64_t axis, in, out;
};

// Those that change, or that a nearest element may change. Precondition: inference took them.
std::vector<Axis> AxesOf(const Attributes& attributes, const std::vector<int64_t>& dims) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < attributes.Ints("axes").size(); ++i) {
    const int64_t axis = FromStart(attributes.Ints("axes")[i], dims.size());
    axes.push_back({axis, dims[axis], attributes.Ints("sizes")[i]});
  }
  return axes;
}

double PlaceOf(const Attributes& attributes, const Axis& axis, int64_t o) {
  const std::string& coordinate = attributes.String("coordinate");
  const auto in = static_cast<double>(axis.in), out = static_cast<double>(axis.out), at = static_cast<double>(o);
  if (coordinate == "asymmetric") return at * in / out;
  if (coordinate == "align_corners") return axis.out == 1 ? 0 : at * (in - 1) / (out - 1);
  if (coordinate == "pytorch_half_pixel" && axis.out == 1) return 0;
  return (at + 0.5) * in / out - 0.5;
}

int64_t Nearest(const std::string& mode, double place) {
  const double below = std::floor(place), above = std::ceil(place), middle = below + 0.5;
  if (mode == "floor") return static_cast<int64_t>(below);
  if (mode == "ceil") return static_cast<int64_t>(above);
  if (mode == "round_prefer_floor") return static_cast<int64_t>(place <= middle ? below : above);
  return static_cast<int64_t>(place < middle ? below : above);
}

// The kernel of a mode at a distance.
double Kernel(const Attributes& attributes, double distance) {
  const double x = std::fabs(distance), a = attributes.Float("cubic_coeff_a");
  if (attributes.String("mode") == "linear") return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// An element of x with its weight.
using Taps = std::vector<std::pair<int64_t, double>>;

Taps TapsOf(const Attributes& attributes, const Axis& axis, int64_t o) {
  const double place = PlaceOf(attributes, axis, o);
  if (attributes.String("mode") == "nearest")
    return {{std::clamp<int64_t>(Nearest(attributes.String("nearest_mode"), place), 0, axis.in - 1), 1}};
  const int64_t reach = attributes.String("mode") == "linear" ? 1 : 2;
  Taps taps;
  if (attributes.Bool("antialias") && axis.out < axis.in) {
    const double shrink = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    const double support = static_cast<double>(reach) / shrink;
    double total = 0;
    const auto first = static_cast<int64_t>(std::ceil(place - support)),
               last = static_cast<int64_t>(std::floor(place + support));
    for (int64_t i = first; i <= last; ++i) {
      const double weight = Kernel(attributes, (static_cast<double>(i) - place) * shrink);
      if (weight == 0) continue;
      taps.emplace_back(std::clamp<int64_t>(i, 0, axis.in - 1), weight);
      total += weight;
    }
    for (auto& tap : taps) tap.second /= total;
    return taps;
  }
  const auto below = static_cast<int64_t>(std::floor(place));
  for (int64_t i = below - reach + 1; i <= below + reach; ++i) {
    const double weight = Kernel(attributes, place - static_cast<double>(i));
    taps.emplace_back(std::clamp<int64_t>(i, 0, axis.in - 1), weight);
  }
  return taps;
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  const std::vector<int64_t>&axes = context.attributes.Ints("axes"), &sizes = context.attributes.Ints("sizes");
  if (sizes.size() != axes.size())
    return context.AttributeError("sizes", absl::StrFormat("one for each of %u axes", axes.size()));
  if (context.attributes.String("mode") != "nearest" && !IsFloat(result.dtype))
    return context.DTypeError(0, "a float to interpolate");
  for (size_t i = 0; i < axes.size(); ++i) {
    QUERN_ASSIGN(const int axis, AxisOf(context, "axes", axes[i]));
    for (size_t j = 0; j < i; ++j) {
      if (FromStart(axes[j], result.dims.size()) == axis) return context.AttributeError("axes", "each axis once");
    }
    const Extent& size = context.operands[0].dims[axis];
    if (!size.is_constant()) return context.UnsupportedError(0, "sizes that are known along the axes");
    if (sizes[i] < 0 || (size == Extent(0) && sizes[i] > 0))
      return context.AttributeError("sizes", "0 or more, and 0 of none");
    result.dims[axis] = sizes[i];
  }
  return std::vector<TensorType>{std::move(result)};
}

// `weights` along an axis of a tensor of that rank.
Value Along(Expansion& e, Value weights, int64_t axis, size_t rank, int64_t count) {
  std::vector<Extent> dims(rank - static_cast<size_t>(axis), Extent(1));
  dims[0] = count;
  return e.Sized(weights, std::move(dims));
}

Value Resized(Expansion& e, Value x, const Axis& axis, const std::vector<Taps>& taps) {
  if (!e.ok()) return {};
  const size_t rank = e.type(x).dims.size();
  const DType dtype = e.type(x).dtype;
  size_t most = 0;
  for (const Taps& of : taps) most = std::max(most, of.size());
  if (static_cast<int64_t>(most) > kMostGathers) {
    // [.., in, r] by [out, in]: lines along the axis are rows.
    std::vector<double> weights(static_cast<size_t>(axis.out * axis.in));
    for (int64_t o = 0; o < axis.out; ++o) {
      for (const auto& [i, weight] : taps[o]) weights[static_cast<size_t>(o * axis.in + i)] += weight;
    }
    std::vector<int64_t> perm;
    for (size_t d = 0; d < rank; ++d) perm.push_back(static_cast<int64_t>(d));
    std::swap(perm[axis.axis], perm.back());
    const Value rows = e.Sized(e.Floats(weights, dtype), {axis.out, axis.in});
    if (rank == 1) {
      const Value y = e.Add("MatMul", {e.Sized(x, {1, axis.in}), rows}, {{"transpose_b", true}});
      return e.Sized(y, {axis.out});
    }
    const Value lines = e.Add("Transpose", {x}, {{"perm", perm}});
    return e.Add("Transpose", {e.Add("MatMul", {lines, rows}, {{"transpose_b", true}})}, {{"perm", perm}});
  }
  Value sum;
  for (size_t t = 0; t < most; ++t) {
    std::vector<int64_t> places;
    std::vector<double> weights;
    for (const Taps& of : taps) {
      places.push_back(t < of.size() ? of[t].first : of[0].first);
      weights.push_back(t < of.size() ? of[t].second : 0);
    }
    const Value taken = e.Add("Gather", {x, e.Integers(places)}, {{"axis", axis.axis}});
    if (most == 1) return taken;
    const Value term = e.Add("Mul", {taken, Along(e, e.Floats(weights, dtype), axis.axis, rank, axis.out)});
    sum = t == 0 ? term : e.Add("Add", {sum, term});
  }
  return sum;
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType type = graph.type(inputs[0]);
  std::vector<int64_t> dims;
  for (const Extent& dim : type.dims) dims.push_back(dim.is_constant() ? dim.constant() : 0);
  const bool nearest = node.attributes.String("mode") == "nearest";
  Value x = nearest ? inputs[0] : e.Wide(inputs[0]);
  for (const Axis& axis : AxesOf(node.attributes, dims)) {
    if (axis.in == 0 || axis.out == 0) {
      std::vector<Extent> none = e.ok() ? e.type(x).dims : type.dims;
      none[axis.axis] = axis.out;
      x = e.Add("Narrow", {x},
                {{"axis", axis.axis}, {"start", std::vector<Extent>{0}}, {"length", std::vector<Extent>{axis.out}}});
      continue;
    }
    std::vector<Taps> taps;
    for (int64_t o = 0; o < axis.out; ++o) taps.push_back(TapsOf(node.attributes, axis, o));
    x = Resized(e, x, axis, taps);
  }
  return e.Finish({e.Stored(x, type.dtype)});
}

// Along one axis after the other, each element from all those of its line.
void Apply(RefContext& context, bool sizes) {
  const Attributes& attributes = context.node.attributes;
  const RefTensor& x = *context.operands[0];
  const bool nearest = attributes.String("mode") == "nearest";
  std::vector<int64_t> dims = x.dims, from(static_cast<size_t>(x.elements()));
  std::vector<double> data = x.data;
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int64_t>(i);
  for (const Axis& axis : AxesOf(attributes, x.dims)) {
    int64_t inner = 1, outer = 1;
    for (size_t d = static_cast<size_t>(axis.axis) + 1; d < dims.size(); ++d) inner *= dims[d];
    for (int64_t d = 0; d < axis.axis; ++d) outer *= dims[d];
    std::vector<double> made;
    std::vector<int64_t> places;
    for (int64_t at = 0; at < outer * axis.out * inner; ++at) {
      const int64_t o = at / inner % axis.out, line = at / inner / axis.out * axis.in * inner + at % inner;
      const double place = PlaceOf(attributes, axis, o);
      if (nearest) {
        const int64_t i =
            std::min(axis.in - 1, std::max<int64_t>(0, Nearest(attributes.String("nearest_mode"), place)));
        places.push_back(from[static_cast<size_t>(line + i * inner)]);
        continue;
      }
      const bool shrinks = attributes.Bool("antialias") && axis.out < axis.in;
      const double shrink = shrinks ? static_cast<double>(axis.out) / static_cast<double>(axis.in) : 1;
      const int64_t beyond = 3 + static_cast<int64_t>(2 / shrink);
      double sum = 0, total = 0;
      for (int64_t i = -beyond; i < axis.in + beyond; ++i) {
        const double weight = Kernel(attributes, (place - static_cast<double>(i)) * shrink);
        if (weight == 0) continue;
        const double value = data[static_cast<size_t>(line + std::clamp<int64_t>(i, 0, axis.in - 1) * inner)];
        sum += sizes ? std::fabs(weight * value) : weight * value;
        total += weight;
      }
      made.push_back(shrinks ? sum / total : sum);
    }
    dims[axis.axis] = axis.out;
    data = std::move(made);
    from = std::move(places);
  }
  RefTensor& y = context.results[0];
  const int64_t elements = y.elements();
  for (int64_t at = 0; at < elements; ++at) {
    if (nearest)
      y.Take(at, x, from[static_cast<size_t>(at)]);
    else
      y.data[at] = sizes ? data[at] : RoundTo(y.dtype, data[at]);
  }
}

}  // namespace

const OpDef& Op_resize() {
  static const OpDef* const op = Make({
      .name = "Resize",
      .doc = "other sizes along some axes, by interpolation",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .shape = "sizes along the axes are known"}},
      .attributes = {{.name = "axes", .kind = AttrKind::kInts},
                     {.name = "sizes", .kind = AttrKind::kInts, .doc = "of the result, by axis"},
                     {.name = "mode",
                      .kind = AttrKind::kString,
                      .default_value = std::string("nearest"),
                      .choices = {"nearest", "linear", "cubic"}},
                     {.name = "coordinate",
                      .kind = AttrKind::kString,
                      .default_value = std::string("half_pixel"),
                      .choices = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"}},
                     {.name = "nearest_mode",
                      .kind = AttrKind::kString,
                      .default_value = std::string("round_prefer_floor"),
                      .choices = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
                     {.name = "antialias", .kind = AttrKind::kBool, .default_value = false},
                     {.name = "cubic_coeff_a", .kind = AttrKind::kFloat, .default_value = -0.75}},
      .infer = Infer,
      .reference = [](RefContext& c) -> Status { return Apply(c, false), absl::OkStatus(); },
      .expand = Expand,
      .rtol = 4e-6,
      .magnitude = [](RefContext& c) -> Status { return Apply(c, true), absl::OkStatus(); },
      .onnx = "Resize",
      .examples = {{{"f32[2, 3, 5, 7]"},
                    {{"axes", std::vector<int64_t>{2, 3}},
                     {"sizes", std::vector<int64_t>{11, 4}},
                     {"mode", std::string("linear")}}},
                   {{"u8[S, 5, 3]"}, {{"axes", std::vector<int64_t>{-2}}, {"sizes", std::vector<int64_t>{13}}}},
                   {{"f32[37, 2]"},
                    {{"axes", std::vector<int64_t>{0}},
                     {"sizes", std::vector<int64_t>{5}},
                     {"mode", std::string("cubic")},
                     {"antialias", true}}},
                   {{"f16[1, 3, 7, 5]"},
                    {{"axes", std::vector<int64_t>{2, 3}},
                     {"sizes", std::vector<int64_t>{9, 11}},
                     {"mode", std::string("cubic")},
                     {"coordinate", std::string("align_corners")}}}},
  });
  return *op;
}

}  // namespace quern::ir
