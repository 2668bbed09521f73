// Pooling.

#include <cmath>

#include "onnx/products.h"
#include "onnx/quantised.h"
#include "onnx/table.h"

namespace quern::onnx {
namespace {

bool Ceil(Call& c) { return c.Int("ceil_mode", 0) != 0; }

// `ceil`: windows may reach past the end.
Value PoolOf(Call& c, Value x, const char* kind, const Windows& windows, bool include_pad, bool ceil) {
  ir::Attributes attributes = windows.Attributes();
  attributes.Set("kind", std::string(kind));
  attributes.Set("kernel", windows.kernel);
  attributes.Set("ceil", ceil);
  attributes.Set("count_include_pad", include_pad);
  return c.Add("Pool", {x}, attributes);
}

Value MeanOf(Call& c, Value x) {
  return PoolOf(c, x, "mean", WindowsOf(c, x, {}), c.Int("count_include_pad", 0) != 0, Ceil(c));
}
void AveragePool(Call& c) { c.Return(MeanOf(c, c.x(0))); }
void QLinearAveragePool(Call& c) {
  if (c.Int("channels_last", 0) != 0) return c.Fail("with channels last it has no op");
  c.Return(QuantisedBy(c, MeanOf(c, DequantisedAt(c, 0)), 3));
}

void MaxPool(Call& c) {
  const Value x = c.x(0);
  const Windows windows = WindowsOf(c, x, {});
  c.Return(PoolOf(c, x, "max", windows, false, Ceil(c)));
  if (!c.Wants(1)) return;
  ir::Attributes attributes = windows.Attributes();
  attributes.Set("kernel", windows.kernel);
  attributes.Set("ceil", Ceil(c));
  const Value float_x = IsFloat(c.dtype(x)) ? x : c.Cast(x, DType::kF32);
  Value at = c.Add("MaxPoolIndices", {float_x}, attributes);
  // Ours are positions in x, row by row, as ONNX counts them.
  if (c.Int("storage_order", 0) != 0 && c.rank(x) == 4) {
    const Value height = c.Size(c.dim(x, 2)), width = c.Size(c.dim(x, 3));
    const Value area = c.Add("Mul", {height, width}), inside = c.Add("Mod", {at, area});
    const Value column = c.Add("Mod", {inside, width}), line = c.Add("Div", {inside, width});
    at = c.Add("Add", {c.Add("Sub", {at, inside}), c.Add("Add", {c.Add("Mul", {column, height}), line})});
  }
  c.Return(1, at);
}

// The root of the sum of |x|^p.
Value Power(Call& c, Value x, double p) {
  if (p == 1) return c.Add("Abs", {x});
  if (p == 2) return c.Add("Mul", {x, x});
  return c.Add("Pow", {c.Add("Abs", {x}), c.Like(p, x)});
}
Value Root(Call& c, Value x, double p) {
  if (p == 1) return x;
  if (p == 2) return c.Add("Sqrt", {x});
  return c.Add("Pow", {x, c.Like(1 / p, x)});
}

// Sums of windows, as means of all their places. A mean of windows that reach past the end is of fewer, so these find
// zeros there.
Value SumsOf(Call& c, Value x, Windows windows) {
  double places = 1;
  for (const int64_t size : windows.kernel) places *= static_cast<double>(size);
  Value mean = PoolOf(c, x, "mean", windows, true, Ceil(c));
  if (Ceil(c)) {
    const Extents dims = c.type(mean).dims;
    const size_t n = windows.kernel.size();
    Ints low(n + 2), high(n + 2);
    for (size_t d = 0; d < n; ++d) {
      low[d + 2] = windows.pads[d];
      high[d + 2] = windows.pads[n + d] + windows.strides[d] - 1;
    }
    windows.pads.assign(2 * n, 0);
    mean = PoolOf(c, c.Add("Pad", {x}, {{"low", low}, {"high", high}}), "mean", windows, true, false);
    for (size_t d = 2; d < dims.size(); ++d) mean = c.Slice(mean, static_cast<int64_t>(d), Extent(0), dims[d]);
  }
  return c.Add("Mul", {mean, c.Like(places, mean)});
}

void LpPool(Call& c) {
  const Value x = c.x(0);
  const auto p = static_cast<double>(c.Int("p", 2));
  c.Return(Root(c, SumsOf(c, Power(c, x, p), WindowsOf(c, x, {})), p));
}

Ints SpatialAxes(Call& c, Value x) {
  Ints axes;
  for (int64_t d = 2; d < c.rank(x); ++d) axes.push_back(d);
  return axes;
}
void Global(Call& c) {
  const Value x = c.x(0);
  c.Return(c.Reduce(c.row.op, x, SpatialAxes(c, x), true));
}
void GlobalLpPool(Call& c) {
  const Value x = c.x(0);
  const auto p = static_cast<double>(c.Int("p", 2));
  c.Return(Root(c, c.Reduce("sum", Power(c, x, p), SpatialAxes(c, x), true), p));
}

void MaxUnpool(Call& c) {
  const Value x = c.x(0), at = c.x(1);
  const Windows windows = WindowsOf(c, x, {});
  const Extents dims = c.type(x).dims;
  const size_t spatial = windows.kernel.size();
  if (spatial == 0) return c.Fail(absl::InvalidArgumentError("an image is needed"));
  // Positions are those of the sizes that the attributes give; another output_shape has them at its beginning.
  Extents inner = {dims[0], dims[1]};
  for (size_t d = 0; d < spatial; ++d) {
    inner.push_back((dims[d + 2] - Extent(1)) * Extent(windows.strides[d]) +
                    Extent(windows.kernel[d] - windows.pads[d] - windows.pads[d + spatial]));
  }
  Extent all(1);
  for (const Extent& size : inner) all = all * size;
  const Extent count = c.type(x).elements();
  const Value y =
      c.Add("ScatterElements", {c.Filled(0, c.dtype(x), {all}), c.Reshape(at, {count}), c.Reshape(x, {count})},
            {{"axis", int64_t{0}}});
  const Value image = c.Reshape(y, inner);
  if (!c.Has(2)) return c.Return(image);
  const Ints shape = c.IntsOf(c.x(2));
  if (shape.size() != inner.size()) return c.Fail(absl::InvalidArgumentError("output_shape has other dimensions"));
  Ints low(inner.size()), high(inner.size());
  for (size_t d = 0; d < inner.size(); ++d) high[d] = shape[d] - c.fixed_dim(image, static_cast<int64_t>(d));
  c.Return(c.Add("Pad", {image}, {{"low", low}, {"high", high}}));
}

constexpr Importer kRows[] = {
    {"AveragePool", AveragePool},
    {"GlobalAveragePool", Global, "mean"},
    {"GlobalLpPool", GlobalLpPool},
    {"GlobalMaxPool", Global, "max"},
    {"LpPool", LpPool},
    {"MaxPool", MaxPool},
    {"MaxUnpool", MaxUnpool, "", 2},
    {"QLinearAveragePool", QLinearAveragePool, "", 4, kContrib},
};

}  // namespace

std::span<const Importer> PoolingImporters() { return kRows; }

}  // namespace quern::onnx
