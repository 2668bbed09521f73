// Window: the windows that slide over the last dimensions, as many as `kernel` has numbers. Element (.., k.., o..) is
// that of x at o * stride + k * dilation - low padding along each, or `value` where that lies outside.
//
//   x [2, 3, 8, 9]  kernel [3, 2], strides [2, 1], pads [1, 0, 1, 0]  ->  [2, 3, 3, 2, 4, 8]

#include "ir/window.h"
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
    else if (IsInteger(y.dtype))
      y.SetInteger(at, Saturated(y.dtype, attributes.Float("value")));
    else
      y.data[at] = RoundOnce(y.dtype, attributes.Float("value"));
  }
  return absl::OkStatus();
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
  });
  return *op;
}

bool IsWindow(const Node& node) { return node.op == &Op_window(); }

}  // namespace quern::ir
