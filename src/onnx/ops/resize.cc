// Resize and Upsample: sums of gathers with places and weights that sizes give. Element o of a result lies at a place
// of x that the coordinate transformation says, from the scale that is given, which is not always the quotient of
// sizes.

#include <algorithm>
#include <cmath>

#include "onnx/images.h"

namespace quern::onnx {
namespace {

struct Form {
  std::string mode, coordinate, nearest;
  double a = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
  bool whole_sizes =
      false;  // align_corners goes by the sizes of results, which before version 18 were not cut to numbers
};

struct Axis {
  int64_t axis = 0, in = 1, out = 1;
  double scale = 1, start = 0, end = 1;  // start and end: of the crop
};

// In f32, in the order of ONNX's formulas, as others compute it: a nearest element is often one of two as near, and
// f32 rounds the quotient of such a place and a scale that is no sum of powers of two back to it (17 / 1.7f is 10).
double PlaceOf(const Form& form, const Axis& axis, int64_t o) {
  const auto in = static_cast<float>(axis.in), whole = static_cast<float>(axis.out), at = static_cast<float>(o),
             scale = static_cast<float>(axis.scale);
  const float out = form.whole_sizes ? whole : in * scale;
  if (form.coordinate == "asymmetric") return at / scale;
  if (form.coordinate == "tf_half_pixel_for_nn") return (at + 0.5f) / scale;
  if (form.coordinate == "align_corners") return out == 1 ? 0 : at * (in - 1) / (out - 1);
  if (form.coordinate == "pytorch_half_pixel" && axis.out == 1) return 0;
  if (form.coordinate == "tf_crop_and_resize") {
    const auto start = static_cast<float>(axis.start), end = static_cast<float>(axis.end);
    return whole > 1 ? start * (in - 1) + at * (end - start) * (in - 1) / (whole - 1) : 0.5f * (start + end) * (in - 1);
  }
  const float plain = (at + 0.5f) / scale;
  if (form.coordinate == "half_pixel_symmetric") return in / 2 * (1 - whole / (scale * in)) + plain - 0.5f;
  return plain - 0.5f;
}

double Kernel(const Form& form, double distance) {
  const double x = std::fabs(distance), a = form.a;
  if (form.mode == "linear") return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

int64_t Nearest(const std::string& mode, double place) {
  const double below = std::floor(place);
  if (mode == "floor") return static_cast<int64_t>(below);
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(place));
  const bool down = mode == "round_prefer_ceil" ? place - below < 0.5 : place - below <= 0.5;
  return static_cast<int64_t>(down ? below : below + 1);
}

// The elements that join, with their weights.
std::vector<std::pair<int64_t, double>> TapsOf(const Form& form, const Axis& axis, int64_t o) {
  const double place = PlaceOf(form, axis, o);
  const auto inside = [&](int64_t i) { return std::clamp<int64_t>(i, 0, axis.in - 1); };
  if (form.mode == "nearest") return {{inside(Nearest(form.nearest, place)), 1}};
  const double shrink = form.antialias ? std::min(1.0, axis.scale) : 1;
  const double reach = (form.mode == "linear" ? 1 : 2) / shrink;
  std::vector<std::pair<int64_t, double>> taps;
  double total = 0;
  const bool outside = form.exclude_outside;
  for (auto i = static_cast<int64_t>(std::floor(place - reach)) + 1; i < place + reach || taps.empty(); ++i) {
    if (taps.size() > 4096) break;
    const double weight = Kernel(form, (static_cast<double>(i) - place) * shrink);
    if (outside && (i < 0 || i >= axis.in)) {
      if (i >= axis.in) break;
      continue;
    }
    taps.emplace_back(inside(i), weight);
    total += weight;
  }
  if (taps.empty()) return {{inside(static_cast<int64_t>(place)), 1}};
  if ((outside || form.antialias) && total != 0) {
    for (auto& tap : taps) tap.second /= total;
  }
  return taps;
}

// The weights in the places of the axis, to broadcast.
Value Along(Call& c, const std::vector<double>& values, int64_t axis, Value x) {
  Extents dims(c.rank(x) - axis, Extent(1));
  dims[0] = Extent(static_cast<int64_t>(values.size()));
  return c.Reals(values, c.dtype(x), dims);
}

Value ResizedAlong(Call& c, Value x, const Form& form, const Axis& axis) {
  std::vector<std::vector<std::pair<int64_t, double>>> taps;
  size_t most = 0;
  for (int64_t o = 0; o < axis.out; ++o) {
    taps.push_back(TapsOf(form, axis, o));
    most = std::max(most, taps.back().size());
  }
  const auto gathered = [&](size_t t, std::vector<double>* weights) {
    Ints places;
    for (const auto& of : taps) {
      places.push_back(t < of.size() ? of[t].first : 0);
      weights->push_back(t < of.size() ? of[t].second : 0);
    }
    return c.Add("Gather", {x, c.Integers(places)}, {{"axis", axis.axis}});
  };
  std::vector<double> weights;
  Value sum = gathered(0, &weights);
  if (form.mode == "nearest") return sum;
  sum = c.Add("Mul", {sum, Along(c, weights, axis.axis, x)});
  for (size_t t = 1; t < most; ++t) {
    weights.clear();
    const Value next = gathered(t, &weights);
    sum = c.Add("Add", {sum, c.Add("Mul", {next, Along(c, weights, axis.axis, x)})});
  }
  if (form.coordinate == "tf_crop_and_resize") {
    // Outside of x is what the attribute says.
    std::vector<double> seen;
    for (int64_t o = 0; o < axis.out; ++o) {
      const double place = PlaceOf(form, axis, o);
      seen.push_back(place >= 0 && place <= static_cast<double>(axis.in - 1) ? 1 : 0);
    }
    const Value there = c.Cast(Along(c, seen, axis.axis, x), DType::kBool);
    sum = c.Add("Where", {there, sum, c.Like(form.extrapolation, sum)});
  }
  return sum;
}

// Each element as often as whole scales say, of any sizes; nothing where the form is another.
std::optional<Value> Repeated(Call& c, Value x, const Form& form, const std::vector<double>& scales) {
  if (form.mode != "nearest") return std::nullopt;
  Extents apart, whole, dims;
  for (int d = 0; d < c.rank(x); ++d) {
    const double scale = scales[d];
    if (scale < 1 || scale != std::floor(scale) || scale > 1024) return std::nullopt;
    const bool rounds = form.nearest == "round_prefer_floor" || form.nearest == "round_prefer_ceil";
    const bool even = scale == 1 || (form.coordinate == "asymmetric" && form.nearest == "floor") ||
                      (form.coordinate == "asymmetric" && form.nearest == "round_prefer_floor" && scale == 2) ||
                      (form.coordinate == "half_pixel" && rounds);
    if (!even) return std::nullopt;
    const Extent size = c.dim(x, d);
    apart.push_back(size);
    whole.push_back(size);
    dims.push_back(size * Extent(static_cast<int64_t>(scale)));
    if (scale == 1) continue;
    apart.emplace_back(1);
    whole.emplace_back(static_cast<int64_t>(scale));
  }
  if (whole.size() > ir::kMostDims) return std::nullopt;
  return c.Reshape(c.Expand(c.Reshape(x, apart), whole), dims);
}

void Apply(Call& c, const Form& form, int scales_input, int sizes_input, const std::vector<double>& attribute) {
  const Value x = c.x(0);
  const int64_t rank = c.rank(x);
  Ints axes = c.IntList("axes");
  if (axes.empty()) {
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  }
  std::vector<double> given = attribute;
  const auto there = [&](int i) { return c.Has(i) && c.type(c.x(i)).elements() != Extent(0); };
  const bool by_size = sizes_input > 0 && there(sizes_input);
  if (given.empty() && !by_size && there(scales_input)) given = c.RealsOf(c.x(scales_input));
  std::vector<double> region;
  if (form.coordinate == "tf_crop_and_resize" && there(1)) region = c.RealsOf(c.x(1));
  Extents sizes;
  if (by_size) sizes = c.ExtentsOf(c.x(sizes_input));
  if (!c.ok()) return;
  if (by_size ? sizes.size() != axes.size() : given.size() != axes.size())
    return c.Fail(absl::InvalidArgumentError("a scale or size for each axis is needed"));
  // Sizes that are whole multiples are scales.
  std::vector<double> scales(rank, 1);
  bool whole = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = c.Axis(axes[i], rank);
    if (!c.ok()) return;
    if (!by_size) {
      scales[axes[i]] = given[i];
      continue;
    }
    const std::optional<Extent> times = sizes[i].DividedBy(c.dim(x, axes[i]));
    if (times && times->is_constant())
      scales[axes[i]] = static_cast<double>(times->constant());
    else
      whole = false;
  }
  if (whole && form.coordinate != "tf_crop_and_resize") {
    if (const std::optional<Value> repeated = Repeated(c, x, form, scales)) return c.Return(*repeated);
  }
  std::vector<Axis> all;
  const std::string policy = c.Str("keep_aspect_ratio_policy", "stretch");
  for (size_t i = 0; i < axes.size(); ++i) {
    Axis axis{.axis = axes[i]};
    const Extent size = c.dim(x, axes[i]);
    if (by_size ? sizes[i] == size && policy == "stretch" : scales[axes[i]] == 1) {
      if (form.coordinate != "tf_crop_and_resize") continue;
    }
    axis.in = c.fixed_dim(x, axes[i]);
    if (by_size) {
      if (!sizes[i].is_constant()) {
        for (const std::string& symbol : sizes[i].Symbols()) c.session.wanted_sizes.insert(symbol);
        return c.Fail("the size %s must be a number", sizes[i].ToString());
      }
      axis.out = sizes[i].constant();
      axis.scale = static_cast<double>(axis.out) / static_cast<double>(std::max<int64_t>(axis.in, 1));
    } else {
      axis.scale = scales[axes[i]];
      axis.out = static_cast<int64_t>(std::floor(static_cast<float>(axis.in) * static_cast<float>(axis.scale)));
    }
    if (region.size() == 2 * axes.size()) {
      axis.start = region[i];
      axis.end = region[i + axes.size()];
    }
    if (!(axis.scale > 0) || axis.out < 0 || axis.out > 1 << 20 || axis.in < 1)
      return c.Fail(absl::InvalidArgumentError("its scales or sizes are none"));
    all.push_back(axis);
  }
  if (by_size && policy != "stretch") {
    double least = all.empty() ? 1 : all[0].scale;
    for (const Axis& axis : all)
      least = policy == "not_larger" ? std::min(least, axis.scale) : std::max(least, axis.scale);
    for (Axis& axis : all) {
      axis.scale = least;
      axis.out = static_cast<int64_t>(std::floor(least * static_cast<double>(axis.in) + 0.5));
    }
  }
  const DType dtype = c.dtype(x);
  Value y = form.mode == "nearest" || IsFloat(dtype) ? x : c.Cast(x, DType::kF32);
  for (const Axis& axis : all) {
    if (c.ok()) y = ResizedAlong(c, y, form, axis);
  }
  c.Return(c.Cast(y, dtype));
}

}  // namespace

void Resize(Call& c) {
  Form form;
  form.mode = c.Str("mode", "nearest");
  const bool old = c.opset < 11;
  form.coordinate = c.Str("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  form.nearest = c.Str("nearest_mode", old ? "floor" : "round_prefer_floor");
  form.a = c.Float("cubic_coeff_a", -0.75);
  form.extrapolation = c.Float("extrapolation_value", 0);
  form.exclude_outside = c.Int("exclude_outside", 0) != 0;
  form.antialias = c.Int("antialias", 0) != 0;
  form.whole_sizes = c.opset >= 18;
  Apply(c, form, old ? 1 : 2, old ? -1 : 3, {});
}

void Upsample(Call& c) {
  Form form;
  form.mode = c.Str("mode", "nearest");
  form.coordinate = "asymmetric";
  form.nearest = "floor";
  Apply(c, form, 1, -1, c.FloatList("scales"));
}

}  // namespace quern::onnx
