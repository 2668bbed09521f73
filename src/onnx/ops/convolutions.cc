// Convolutions.

#include <algorithm>
#include <cmath>

#include "onnx/products.h"
#include "onnx/table.h"

namespace quern::onnx {

Windows WindowsOf(Call& c, Value x, Ints kernel, bool transposed) {
  Windows windows{std::move(kernel), c.IntList("strides"), c.IntList("pads"), c.IntList("dilations")};
  const size_t spatial = std::max<int64_t>(c.rank(x) - 2, 0);
  if (windows.kernel.empty()) windows.kernel = c.IntList("kernel_shape");
  if (windows.strides.empty()) windows.strides.assign(spatial, 1);
  if (windows.dilations.empty()) windows.dilations.assign(spatial, 1);
  const std::string automatic = c.Str("auto_pad", "NOTSET");
  if (windows.pads.empty() || automatic != "NOTSET") windows.pads.assign(2 * spatial, 0);
  const auto fits = [&](const Ints& list, size_t size) { return list.size() == size; };
  const auto positive = [](int64_t value) { return value > 0 && value < int64_t{1} << 31; };
  const bool right = fits(windows.kernel, spatial) && fits(windows.strides, spatial) &&
                     fits(windows.dilations, spatial) && fits(windows.pads, 2 * spatial) &&
                     std::all_of(windows.kernel.begin(), windows.kernel.end(), positive) &&
                     std::all_of(windows.strides.begin(), windows.strides.end(), positive) &&
                     std::all_of(windows.dilations.begin(), windows.dilations.end(), positive);
  if (!right) {
    c.Fail(absl::InvalidArgumentError(
        absl::StrFormat("its kernel, strides, pads or dilations are not those of %u spatial dimensions", spatial)));
    windows = {Ints(spatial, 1), Ints(spatial, 1), Ints(2 * spatial, 0), Ints(spatial, 1)};
    return windows;
  }
  if (transposed || !automatic.starts_with("SAME")) return windows;
  // As many places as strides fit into the size.
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t span = (windows.kernel[d] - 1) * windows.dilations[d] + 1, stride = windows.strides[d];
    int64_t total = span - 1;
    if (stride != 1) {
      const int64_t size = c.fixed_dim(x, static_cast<int64_t>(d) + 2);
      total = std::max<int64_t>(0, ((size + stride - 1) / stride - 1) * stride + span - size);
    }
    const int64_t less = total / 2, more = total - less;
    windows.pads[d] = automatic == "SAME_UPPER" ? less : more;
    windows.pads[d + spatial] = total - windows.pads[d];
  }
  return windows;
}

namespace {

Ints KernelOf(Call& c, Value w) {
  Ints kernel;
  for (int d = 2; d < c.rank(w); ++d) kernel.push_back(c.fixed_dim(w, d));
  return kernel;
}

// Of x, weights and a bias that may be absent.
Value ConvOf(Call& c) {
  const Value x = c.x(0), w = c.x(1);
  ir::Attributes attributes = WindowsOf(c, x, KernelOf(c, w)).Attributes();
  attributes.Set("groups", c.Int("group", 1));
  return c.Add("Conv", c.Has(2) ? Values{x, w, c.x(2)} : Values{x, w}, attributes);
}

void Conv(Call& c) { c.Return(ConvOf(c)); }

// com.microsoft: what ONNX Runtime writes where it saves a model that it has optimised. z is added to the result.
void FusedConv(Call& c) {
  Value y = ConvOf(c);
  if (c.Has(3)) y = c.Add("Add", {y, c.x(3)});
  const std::string act = c.Str("activation", "");
  const std::vector<double> numbers = c.FloatList("activation_params");
  const auto number = [&](size_t i, double usual) { return i < numbers.size() ? numbers[i] : usual; };
  if (act == "Relu" || act == "Sigmoid" || act == "Tanh")
    y = c.Add(act, {y});
  else if (act == "LeakyRelu")
    y = c.Add(act, {y}, {{"alpha", number(0, 0.01)}});
  else if (act == "Clip")
    y = c.Add("Min", {c.Add("Max", {y, c.Like(number(0, -INFINITY), y)}), c.Like(number(1, INFINITY), y)});
  else if (act == "HardSigmoid")
    y = c.Add(act, {y}, {{"alpha", number(0, 0.2)}, {"beta", number(1, 0.5)}});
  else if (!act.empty())
    return c.Fail("its activation %s has no op", act);
  c.Return(y);
}

void ConvTranspose(Call& c) {
  const Value x = c.x(0), w = c.x(1);
  Windows windows = WindowsOf(c, x, KernelOf(c, w), true);
  const size_t spatial = windows.kernel.size();
  Ints extra = c.IntList("output_padding");
  extra.resize(spatial);
  const Ints shape = c.IntList("output_shape");
  const std::string automatic = c.Str("auto_pad", "NOTSET");
  const bool same = automatic.starts_with("SAME");
  for (size_t d = 0; d < spatial && (same || !shape.empty()); ++d) {
    const int64_t span = (windows.kernel[d] - 1) * windows.dilations[d] + 1, stride = windows.strides[d];
    // What remains of the whole result: with SAME, as many as the size times the stride.
    int64_t total = span + extra[d] - stride;
    if (!shape.empty()) {
      if (shape.size() < spatial) return c.Fail(absl::InvalidArgumentError("output_shape has too few sizes"));
      const int64_t wanted = shape[shape.size() - spatial + d];
      total = stride * (c.fixed_dim(x, static_cast<int64_t>(d) + 2) - 1) + extra[d] + span - wanted;
    }
    // Too few results: zeros behind the last.
    if (total < 0) {
      extra[d] -= total;
      total = 0;
    }
    const int64_t less = total / 2;
    windows.pads[d] = automatic == "SAME_UPPER" ? less : total - less;
    windows.pads[d + spatial] = total - windows.pads[d];
  }
  ir::Attributes attributes = windows.Attributes();
  attributes.Set("groups", c.Int("group", 1));
  attributes.Set("output_padding", extra);
  c.Return(c.Add("ConvTranspose", c.Has(2) ? Values{x, w, c.x(2)} : Values{x, w}, attributes));
}

constexpr Importer kRows[] = {
    {"Conv", Conv, "", 2},
    {"ConvTranspose", ConvTranspose, "", 2},
    {"FusedConv", FusedConv, "", 2, kContrib},
};

}  // namespace

std::span<const Importer> ConvolutionImporters() { return kRows; }

}  // namespace quern::onnx
