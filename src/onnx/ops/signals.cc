// Windows, transforms and scales of signals.

#include <cmath>
#include <numbers>

#include "onnx/table.h"

namespace quern::onnx {
namespace {

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), where N is the size, or one less of a symmetric window.
template <const double (*coefficients)[3]>
void Window(Call& c) {
  const Ints size = c.IntsOf(c.x(0));
  if (size.size() != 1 || size[0] < 0 || size[0] > int64_t{1} << 20)
    return c.Fail(absl::InvalidArgumentError("its size is none"));
  const StatusOr<DType> to = DTypeOf(static_cast<int>(c.Int("output_datatype", 1)));
  if (!to.ok()) return c.Fail(to.status());
  const double whole = static_cast<double>(size[0] - (c.Int("periodic", 1) == 0 ? 1 : 0));
  std::vector<double> window;
  for (int64_t n = 0; n < size[0]; ++n) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(n) / whole;
    window.push_back((*coefficients)[0] - (*coefficients)[1] * std::cos(turn) +
                     (*coefficients)[2] * std::cos(2 * turn));
  }
  c.Return(c.Reals(window, *to, {Extent(size[0])}));
}
constexpr double kHann[3] = {0.5, 0.5, 0}, kHamming[3] = {25.0 / 46, 1 - 25.0 / 46, 0},
                 kBlackman[3] = {0.42, 0.5, 0.08};

// [.., 1] or [.., 2] as c64 [..].
Value AsComplex(Call& c, Value x) {
  const int64_t last = c.rank(x) - 1;
  const int64_t parts = c.fixed_dim(x, last);
  Extents dims = c.type(x).dims;
  if (!c.ok()) return x;
  dims.pop_back();
  const Value wide = c.Cast(x, DType::kF32);
  const auto part = [&](int64_t i) { return c.Reshape(c.Slice(wide, last, Extent(i), Extent(1)), dims); };
  return c.Add("Complex", {part(0), parts == 2 ? part(1) : c.Filled(0, DType::kF32, dims)});
}
Value AsPairs(Call& c, Value z, DType dtype) {
  Extents dims = c.type(z).dims;
  dims.emplace_back(1);
  const auto part = [&](const char* op) { return c.Reshape(c.Add(op, {z}), dims); };
  return c.Cast(c.Add("Concat", {part("Real"), part("Imag")}, {{"axis", static_cast<int64_t>(dims.size()) - 1}}),
                dtype);
}

void Dft(Call& c) {
  const Value x = c.x(0);
  const int64_t rank = c.rank(x);
  int64_t axis = c.Int("axis", c.opset >= 20 ? -2 : 1);
  if (c.opset >= 20 && c.Has(2)) {
    const Ints given = c.IntsOf(c.x(2));
    axis = given.empty() ? axis : given[0];
  }
  axis = c.Axis(axis, rank);
  const bool inverse = c.Int("inverse", 0) != 0, onesided = c.Int("onesided", 0) != 0;
  Value z = AsComplex(c, x);
  if (c.Has(1)) {
    // Cut, or filled up with zeros.
    const Ints length = c.IntsOf(c.x(1));
    const int64_t now = c.fixed_dim(x, axis), wanted = length.empty() ? now : length[0];
    if (wanted < now) z = c.Slice(z, axis, Extent(0), Extent(wanted));
    if (wanted > now) {
      Extents fill = c.type(z).dims;
      if (c.ok()) fill[axis] = Extent(wanted - now);
      const Value zeros = c.Filled(0, DType::kF32, fill);
      z = c.Add("Concat", {z, c.Add("Complex", {zeros, zeros})}, {{"axis", axis}});
    }
  }
  Value y = c.Add(inverse ? "Ifft" : "Fft", {z}, {{"axis", axis}});
  if (onesided) y = c.Slice(y, axis, Extent(0), c.dim(y, axis).FloorDividedBy(2) + Extent(1));
  c.Return(AsPairs(c, y, c.dtype(x)));
}

void Stft(Call& c) {
  const Value signal = c.x(0);
  const Ints step = c.IntsOf(c.x(1));
  const int64_t parts = c.rank(signal) == 3 ? c.fixed_dim(signal, 2) : 1;
  if (step.size() != 1 || step[0] < 1) return c.Fail(absl::InvalidArgumentError("its step is none"));
  int64_t frame = 0;
  if (c.Has(3)) {
    const Ints length = c.IntsOf(c.x(3));
    frame = length.empty() ? 0 : length[0];
  } else if (c.Has(2)) {
    frame = c.fixed_dim(c.x(2), 0);
  }
  if (frame < 1) return c.Fail(absl::InvalidArgumentError("the length of its frames is none"));
  if (parts != 1) return c.Fail("of complex signals there is no op");
  const DType dtype = c.dtype(signal);
  const Value flat = c.Cast(c.Reshape(signal, {c.dim(signal, 0), c.dim(signal, 1)}), DType::kF32);
  const Value window = c.Has(2) ? c.Cast(c.x(2), DType::kF32) : c.Filled(1, DType::kF32, {Extent(frame)});
  const Value z =
      c.Add("Stft", {flat, window}, {{"frame", frame}, {"hop", step[0]}, {"onesided", c.Int("onesided", 1) != 0}});
  // Ours has a column for each frame.
  c.Return(AsPairs(c, c.Transpose(z, {0, 2, 1}), dtype));
}

// Triangles over the bins of a spectrum, evenly spaced in mel (HTK's: 2595 log10(1 + f / 700)).
void MelWeightMatrix(Call& c) {
  const Ints bands = c.IntsOf(c.x(0)), length = c.IntsOf(c.x(1)), rate = c.IntsOf(c.x(2));
  const std::vector<double> low = c.RealsOf(c.x(3)), high = c.RealsOf(c.x(4));
  if (!c.ok() || bands.empty() || length.empty() || rate.empty() || low.empty() || high.empty()) return;
  const int64_t count = bands[0], bins = length[0] / 2 + 1;
  if (count < 1 || bins < 1 || count > 1 << 16 || bins > 1 << 20 || count * bins > 1 << 24)
    return c.Fail(absl::InvalidArgumentError("its sizes are none"));
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double from = mel(low[0]), step = (mel(high[0]) - from) / static_cast<double>(count + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < count + 2; ++i) {
    const double f = 700 * (std::pow(10, (from + static_cast<double>(i) * step) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length[0] + 1) * f / static_cast<double>(rate[0]));
    if (!(bin >= 0 && bin <= 2.0 * static_cast<double>(bins)))
      return c.Fail(absl::InvalidArgumentError("its frequencies are none of the spectrum"));
    edges.push_back(static_cast<int64_t>(bin));
  }
  std::vector<double> matrix(bins * count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t left = edges[i], middle = edges[i + 1], right = edges[i + 2];
    const auto set = [&](int64_t bin, double value) {
      if (bin >= 0 && bin < bins) matrix[bin * count + i] = value;
    };
    if (middle == left) {
      set(middle, 1);
    } else {
      for (int64_t j = left; j <= middle; ++j)
        set(j, static_cast<double>(j - left) / static_cast<double>(middle - left));
    }
    for (int64_t j = middle; j < right && right > middle; ++j)
      set(j, static_cast<double>(right - j) / static_cast<double>(right - middle));
  }
  const StatusOr<DType> to = DTypeOf(static_cast<int>(c.Int("output_datatype", 1)));
  if (!to.ok()) return c.Fail(to.status());
  c.Return(c.Reals(matrix, *to, {Extent(bins), Extent(count)}));
}

constexpr Importer kRows[] = {
    {"BlackmanWindow", Window<&kBlackman>},      {"DFT", Dft},
    {"HammingWindow", Window<&kHamming>},        {"HannWindow", Window<&kHann>},
    {"MelWeightMatrix", MelWeightMatrix, "", 5}, {"STFT", Stft, "", 2},
};

}  // namespace

std::span<const Importer> SignalImporters() { return kRows; }

}  // namespace quern::onnx
