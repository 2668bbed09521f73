// Window: the windows that slide over the last dimensions, as many as `kernel` has numbers. Element (.., k.., o..) is
// that of x at o * stride + k * dilation - low padding along each, or `value` where that lies outside.
//
//   x [2, 3, 8, 9]  kernel [3, 2], strides [2, 1], pads [1, 0, 1, 0]  ->  [2, 3, 3, 2, 4, 8]

#include "ir/window.h"
#include "ir/fill.h"
#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const std::vector<int64_t>& kernel = context.attributes.Ints("kernel");
  if (kernel.empty() || static_cast<int>(kernel.size()) > x.rank())
    return context.AttributeError("kernel", absl::StrFormat("1 to %d numbers", x.rank()));
  const size_t leading = x.dims.size() - kernel.size();
  TensorType result{x.dtype, {x.dims.begin(), x.dims.begin() + static_cast<int64_t>(leading)}};
  for (const int64_t size : kernel) result.dims.push_back(Extent(size));
  QUERN_ASSIGN(const std::vector<Extent> places,
               WindowPlaces(context, 0, std::span(x.dims).subspan(leading), WindowOf(context.attributes, kernel)));
  result.dims.insert(result.dims.end(), places.begin(), places.end());
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  const Window window = WindowOf(context.node().attributes, context.node().attributes.Ints("kernel"));
  const size_t n = window.kernel.size(), leading = context.index().size() - 2 * n;
  kir::Index at(context.index().begin(), context.index().begin() + static_cast<int64_t>(leading));
  for (size_t d = 0; d < n; ++d) {
    at.push_back(context.index()[leading + n + d] * static_cast<double>(window.strides[d]) +
                 context.index()[leading + d] * static_cast<double>(window.dilations[d]) -
                 static_cast<double>(window.low[d]));
  }
  if (!window.IsPadded()) return context.Operand(0, std::move(at));
  const DType dtype = context.result_type().dtype;
  return context.Operand(
      0, std::move(at),
      kir::build::CastTo(dtype, kir::build::Num(context.node().attributes.Float("value"), DType::kF64)));
}

Status Reference(RefContext& context) {
  const Attributes& attributes = context.node.attributes;
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const std::vector<int64_t>& kernel = attributes.Ints("kernel");
  const size_t n = kernel.size(), leading = x.dims.size() - n;
  const Window window = WindowOf(attributes, kernel);
  const int64_t elements = y.elements();
  std::vector<int64_t> index(y.dims.size()), place(x.dims.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    std::copy_n(index.begin(), leading, place.begin());
    bool inside = true;
    for (size_t d = 0; d < n; ++d) {
      int64_t& along = place[leading + d];
      along = index[leading + n + d] * window.strides[d] + index[leading + d] * window.dilations[d] - window.low[d];
      inside &= along >= 0 && along < x.dims[leading + d];
    }
    if (inside)
      y.Take(at, x, x.Offset(place));
    else
      Fill(y, at, attributes.Float("value"));
  }
  return absl::OkStatus();
}

// Whether strides, pads and kernels that many times as large are still what those may be.
bool CanGrow(const Window& window, size_t d, int64_t times) {
  const auto fits = [&](int64_t number) { return number <= kMostOfWindow / times; };
  return fits(window.kernel[d]) && fits(window.strides[d]) && fits(window.low[d]) && fits(window.high[d]);
}

// One more dimension behind those of `window`, of which it takes `kernel` elements at one place each `stride`.
void Append(Window& window, int64_t kernel, int64_t stride) {
  window.kernel.push_back(kernel);
  window.strides.push_back(stride);
  window.dilations.push_back(1);
  window.low.push_back(0);
  window.high.push_back(0);
}

}  // namespace

const OpDef& Op_window() {
  static const OpDef* const op = Make({
      .name = "Window",
      .doc = "windows over the last dimensions: [.., s..] to [.., kernel.., places..]; `value` outside of x",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x", .shape = "[.., s..]"}},
      .attributes = WindowAttributes({{.name = "kernel", .kind = AttrKind::kInts},
                                      {.name = "value", .kind = AttrKind::kFloat, .default_value = 0.0}}),
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .examples = {{{"f32[2, 9]"}, {{"kernel", std::vector<int64_t>{2}}}}},
  });
  return *op;
}

bool IsWindow(const Node& node) { return node.op == &Op_window(); }

Value ChannelsToLast(Expansion& e, Value x) {
  return e.ok() ? e.Add("Transpose", {x}, {{"perm", LastFromFirst(e.type(x).dims.size())}}) : x;
}

Value ChannelsToFirst(Expansion& e, Value x) {
  return e.ok() ? e.Add("Transpose", {x}, {{"perm", FirstFromLast(e.type(x).dims.size())}}) : x;
}

Value Windows(Expansion& e, Value x, const Window& window, double value) {
  Attributes attributes = AttributesOf(window);
  attributes.Set("kernel", window.kernel);
  attributes.Set("value", value);
  return e.Add("Window", {x}, std::move(attributes));
}

Value WindowsBesideChannels(Expansion& e, Value x, const Window& window, double value) {
  const size_t n = window.kernel.size();
  Window by = window;
  Append(by, 1, 1);
  const Value windows = Windows(e, x, by, value);  // [N, k.., 1, o.., C]
  if (!e.ok()) return windows;
  std::vector<Extent> dims = e.type(windows).dims;
  dims.erase(dims.begin() + 1 + static_cast<int64_t>(n));
  return e.Sized(windows, std::move(dims));
}

// Where neighbours along the last dimension are read, they and their channels are neighbours in memory: one dimension,
// in which windows are `channels` times as wide and as far apart.
Value WindowsOfChannels(Expansion& e, Value x, const Window& window, double value) {
  const std::vector<Extent> dims = e.type(x).dims;
  const size_t n = window.kernel.size(), last = n - 1;
  const int64_t channels = dims.back().constant();
  Window by = window;
  if (CanGrow(by, last, channels) && by.dilations[last] == 1 && (by.strides[last] == 1 || dims[n].is_constant())) {
    for (std::vector<int64_t>* of : {&by.kernel, &by.strides, &by.low, &by.high}) of->back() *= channels;
    std::vector<Extent> joined(dims.begin(), dims.end() - 1);
    joined.back() = joined.back() * Extent(channels);
    x = e.Sized(x, std::move(joined));
  } else {
    Append(by, channels, 1);
  }
  const Value windows = Windows(e, x, by, value);  // [N, k.. C, o..], or [N, k.., C, o.., 1]
  const auto parts = static_cast<int64_t>(by.kernel.size());
  std::vector<int64_t> perm = {0};
  for (int64_t d = 0; d < parts; ++d) perm.push_back(1 + parts + d);
  for (int64_t d = 0; d < parts; ++d) perm.push_back(1 + d);
  const Value turned = e.Add("Transpose", {windows}, {{"perm", perm}});
  if (!e.ok()) return turned;
  std::vector<Extent> rows(e.type(turned).dims.begin(), e.type(turned).dims.begin() + 1 + static_cast<int64_t>(n));
  Extent k(channels);
  for (const int64_t size : window.kernel) k = k * Extent(size);
  rows.push_back(k);
  return e.Sized(turned, std::move(rows));
}

}  // namespace quern::ir
