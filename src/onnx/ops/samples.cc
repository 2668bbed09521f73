// GridSample and RoiAlign: elements of images at places that are data, interpolated.

#include "onnx/images.h"

namespace quern::onnx {
namespace {

Value Plus(Call& c, Value x, double by) { return c.Add("Add", {x, c.Like(by, x)}); }
Value Times(Call& c, Value x, double by) { return c.Add("Mul", {x, c.Like(by, x)}); }
Value Between(Call& c, Value x, double low, double high) {
  return c.Add("Min", {c.Add("Max", {x, c.Like(low, x)}), c.Like(high, x)});
}

// One coordinate of the grid in elements.
Value Unscaled(Call& c, Value at, double size, bool align) {
  if (align) return Times(c, Plus(c, at, 1), (size - 1) / 2);
  return Plus(c, Times(c, Plus(c, at, 1), size / 2), -0.5);
}

// Back and forth between the borders.
Value Reflected(Call& c, Value at, double size, bool align) {
  const double low = align ? 0 : -0.5, span = align ? size - 1 : size;
  if (span <= 0) return c.Like(0, at);
  const Value off = c.Add("Abs", {Plus(c, at, -low)});
  const Value turns = c.Add("Floor", {Times(c, off, 1 / span)});
  const Value rest = c.Add("Sub", {off, Times(c, turns, span)});
  const Value odd = c.Add("Ne", {c.Add("Fmod", {turns, c.Like(2, turns)}), c.Like(0, turns)});
  return Plus(c, c.Add("Where", {odd, c.Add("Sub", {c.Like(span, rest), rest}), rest}), low);
}

// Weights of the four elements about a place that is `t` behind the second of them (Keys, a = -3/4).
Values CubicWeights(Call& c, Value t) {
  constexpr double kA = -0.75;
  const auto near = [&](Value x) {  // |x| <= 1
    const Value inner = Plus(c, Times(c, x, kA + 2), -(kA + 3));
    return Plus(c, c.Add("Mul", {c.Add("Mul", {inner, x}), x}), 1);
  };
  const auto far = [&](Value x) {  // 1 < |x| < 2
    const Value inner = Plus(c, c.Add("Mul", {Plus(c, Times(c, x, kA), -5 * kA), x}), 8 * kA);
    return Plus(c, c.Add("Mul", {inner, x}), -4 * kA);
  };
  const Value rest = c.Add("Sub", {c.Like(1, t), t});
  return {far(Plus(c, t, 1)), near(t), near(rest), far(Plus(c, rest, 1))};
}

}  // namespace

void GridSample(Call& c) {
  const Value x = c.x(0);
  if (c.rank(x) != 4) return c.Fail("of images of other than two dimensions there is no op");
  std::string mode = c.Str("mode", "bilinear");
  const std::string padding = c.Str("padding_mode", "zeros");
  const bool align = c.Int("align_corners", 0) != 0, cubic = mode == "bicubic" || mode == "cubic",
             nearest = mode == "nearest";
  const Value grid = c.Cast(c.x(1), c.dtype(x));
  const Extent n = c.dim(x, 0), channels = c.dim(x, 1), h = c.dim(grid, 1), w = c.dim(grid, 2), places = h * w;
  const auto height = static_cast<double>(c.fixed_dim(x, 2)), width = static_cast<double>(c.fixed_dim(x, 3));
  const auto coordinate = [&](int64_t i, double size) {
    const Value at =
        Unscaled(c, c.Reshape(c.Slice(grid, 3, Extent(i), Extent(1)), {n, Extent(1), places}), size, align);
    if (cubic) return at;
    if (padding == "border") return Between(c, at, 0, size - 1);
    if (padding == "reflection") return Between(c, Reflected(c, at, size, align), 0, size - 1);
    return at;
  };
  const Value column = coordinate(0, width), row = coordinate(1, height);
  const Value flat = c.Reshape(x, {n, channels, c.dim(x, 2) * c.dim(x, 3)});
  // x at whole places, with the padding.
  const auto pixel = [&](Value at_row, Value at_column) {
    std::optional<Value> inside;
    if (padding == "zeros") {
      const auto within = [&](Value at, double size) {
        return c.Add("BitAnd", {c.Add("Ge", {at, c.Like(0, at)}), c.Add("Le", {at, c.Like(size - 1, at)})});
      };
      inside = c.Add("BitAnd", {within(at_row, height), within(at_column, width)});
    } else if (padding == "reflection") {
      at_row = Reflected(c, at_row, height, align);
      at_column = Reflected(c, at_column, width, align);
    }
    at_row = c.Cast(Between(c, at_row, 0, height - 1), DType::kI64);
    at_column = c.Cast(Between(c, at_column, 0, width - 1), DType::kI64);
    const Value at = c.Add("Add", {Times(c, at_row, width), at_column});
    const Value read = c.Add("GatherElements", {flat, c.Expand(at, {n, channels, places})}, {{"axis", int64_t{2}}});
    return inside ? c.Add("Where", {*inside, read, c.Like(0, read)}) : read;
  };
  Value y;
  if (nearest) {
    y = pixel(c.Add("Round", {row}), c.Add("Round", {column}));
  } else {
    const Value top = c.Add("Floor", {row}), left = c.Add("Floor", {column});
    const Value down = c.Add("Sub", {row, top}), right = c.Add("Sub", {column, left});
    const auto linear = [&](Value t) { return Values{c.Add("Sub", {c.Like(1, t), t}), t}; };
    const Values of_rows = cubic ? CubicWeights(c, down) : linear(down);
    const Values of_columns = cubic ? CubicWeights(c, right) : linear(right);
    const double first = cubic ? -1 : 0;
    bool begun = false;
    for (size_t i = 0; i < of_rows.size(); ++i) {
      for (size_t j = 0; j < of_columns.size(); ++j) {
        const Value read =
            pixel(Plus(c, top, first + static_cast<double>(i)), Plus(c, left, first + static_cast<double>(j)));
        const Value term = c.Add("Mul", {read, c.Add("Mul", {of_rows[i], of_columns[j]})});
        y = begun ? c.Add("Add", {y, term}) : term;
        begun = true;
      }
    }
  }
  c.Return(c.Reshape(y, {n, channels, h, w}));
}

void RoiAlign(Call& c) {
  const Value x = c.x(0), rois = c.x(1), batch = c.Cast(c.x(2), DType::kI64);
  const int64_t rows = c.Int("output_height", 1), columns = c.Int("output_width", 1),
                ratio = c.Int("sampling_ratio", 0);
  const double scale = c.Float("spatial_scale", 1);
  const bool half =
      c.Str("coordinate_transformation_mode", c.opset < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  if (rows < 1 || columns < 1 || rows > 4096 || columns > 4096 || ratio > 4096)
    return c.Fail(absl::InvalidArgumentError("its sizes are none"));
  if (ratio < 1) return c.Fail("how many samples a place has depends on data (sampling_ratio 0)");
  const auto height = static_cast<double>(c.fixed_dim(x, 2)), width = static_cast<double>(c.fixed_dim(x, 3));
  const Extent count = c.dim(rois, 0), channels = c.dim(x, 1);
  const auto corner = [&](int64_t i) {
    const Value at = Times(c, c.Slice(rois, 1, Extent(i), Extent(1)), scale);  // [R, 1]
    return half ? Plus(c, at, -0.5) : at;
  };
  // Samples of each place along a side, [R, places * ratio].
  const auto samples = [&](int64_t low, int64_t high, int64_t places) {
    const Value from = corner(low);
    Value size = c.Add("Sub", {corner(high), from});
    if (!half) size = c.Add("Max", {size, c.Like(1, size)});
    std::vector<double> at;
    for (int64_t i = 0; i < places * ratio; ++i)
      at.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(places * ratio));
    return c.Add("Add", {from, c.Add("Mul", {size, c.Reals(at, c.dtype(x), {Extent(1), Extent(places * ratio)})})});
  };
  const Value ys = samples(1, 3, rows), xs = samples(0, 2, columns);
  const Extent h(rows * ratio), w(columns * ratio);
  // Pixels are rows of channels.
  const Value pixels = c.Reshape(c.Transpose(x, {0, 2, 3, 1}), {c.dim(x, 0) * c.dim(x, 2) * c.dim(x, 3), channels});
  const Value base = c.Reshape(Times(c, batch, height * width), {count, Extent(1), Extent(1)});
  struct Side {
    Value low, high, to_low, to_high, inside;
  };
  const auto side = [&](Value at, double size, bool row) {
    const Extents dims = row ? Extents{count, h, Extent(1)} : Extents{count, Extent(1), w};
    at = c.Reshape(at, dims);
    Side made;
    made.inside = c.Add("BitAnd", {c.Add("Ge", {at, c.Like(-1, at)}), c.Add("Le", {at, c.Like(size, at)})});
    at = Between(c, at, 0, size - 1);
    const Value low = c.Add("Floor", {at});
    made.low = c.Cast(low, DType::kI64);
    made.high = c.Cast(Between(c, Plus(c, low, 1), 0, size - 1), DType::kI64);
    made.to_high = c.Add("Sub", {at, low});
    made.to_low = c.Add("Sub", {c.Like(1, at), made.to_high});
    return made;
  };
  const Side down = side(ys, height, true), across = side(xs, width, false);
  const auto read = [&](Value row, Value column, Value row_weight, Value column_weight) {
    const Value at = c.Add("Add", {c.Add("Add", {Times(c, row, width), column}), base});
    const Value weight = c.Reshape(c.Add("Mul", {row_weight, column_weight}), {count, h, w, Extent(1)});
    return c.Add("Mul", {c.Add("Gather", {pixels, at}, {{"axis", int64_t{0}}}), weight});
  };
  const bool most = c.Str("mode", "avg") == "max";
  const Value parts[] = {read(down.low, across.low, down.to_low, across.to_low),
                         read(down.low, across.high, down.to_low, across.to_high),
                         read(down.high, across.low, down.to_high, across.to_low),
                         read(down.high, across.high, down.to_high, across.to_high)};
  Value y = parts[0];
  for (int i = 1; i < 4; ++i) y = c.Add(most ? "Max" : "Add", {y, parts[i]});
  const Value inside = c.Reshape(c.Add("BitAnd", {down.inside, across.inside}), {count, h, w, Extent(1)});
  y = c.Add("Where", {inside, y, c.Like(0, y)});
  y = c.Reshape(y, {count, Extent(rows), Extent(ratio), Extent(columns), Extent(ratio), channels});
  y = c.Reduce(most ? "max" : "mean", y, {2, 4}, false);
  c.Return(c.Transpose(y, {0, 3, 1, 2}));
}

}  // namespace quern::onnx
