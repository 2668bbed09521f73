#include "ir/window.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

bool AllIn(const std::vector<int64_t>& numbers, int64_t low) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n >= low && n <= kMostOfWindow; });
}

std::vector<int64_t> Given(const Attributes& attributes, const char* name, size_t count, int64_t otherwise) {
  const std::vector<int64_t>& given = attributes.Ints(name);
  return given.empty() ? std::vector<int64_t>(count, otherwise) : given;
}

}  // namespace

bool Window::IsPadded() const {
  const auto positive = [](int64_t n) { return n > 0; };
  return std::any_of(low.begin(), low.end(), positive) || std::any_of(high.begin(), high.end(), positive);
}

bool Window::IsTrivial() const {
  const auto one = [](int64_t n) { return n == 1; };
  return !IsPadded() && std::all_of(kernel.begin(), kernel.end(), one) &&
         std::all_of(strides.begin(), strides.end(), one);
}

std::vector<AttrDef> WindowAttributes(std::vector<AttrDef> others) {
  const std::vector<int64_t> none;
  for (const AttrDef& own : std::initializer_list<AttrDef>{
           {.name = "strides", .kind = AttrKind::kInts, .default_value = none, .doc = "by dimension; none: 1"},
           {.name = "pads",
            .kind = AttrKind::kInts,
            .default_value = none,
            .doc = "before each dimension, then after each; none: 0"},
           {.name = "dilations", .kind = AttrKind::kInts, .default_value = none, .doc = "by dimension; none: 1"}})
    others.push_back(own);
  return others;
}

Window WindowOf(const Attributes& attributes, std::span<const int64_t> kernel) {
  const size_t n = kernel.size();
  Window window;
  window.kernel.assign(kernel.begin(), kernel.end());
  window.strides = Given(attributes, "strides", n, 1);
  window.dilations = Given(attributes, "dilations", n, 1);
  const std::vector<int64_t> pads = Given(attributes, "pads", 2 * n, 0);
  const auto middle = pads.begin() + static_cast<int64_t>(std::min(n, pads.size()));
  window.low.assign(pads.begin(), middle);
  window.high.assign(middle, pads.end());
  return window;
}

Window WindowReaching(const Attributes& attributes, std::span<const Extent> dims, std::span<const Extent> places) {
  Window window = WindowOf(attributes, attributes.Ints("kernel"));
  for (size_t d = 0; attributes.Bool("ceil") && d < dims.size(); ++d) {
    const int64_t needed = (places[d].constant() - 1) * window.strides[d] + window.Span(d);
    window.high[d] = std::max<int64_t>(0, needed - dims[d].constant() - window.low[d]);
  }
  return window;
}

Window WindowOf(const Attributes& attributes, const TensorType& weights) {
  std::vector<int64_t> kernel;
  for (size_t d = 2; d < weights.dims.size(); ++d) kernel.push_back(weights.dims[d].constant());
  return WindowOf(attributes, kernel);
}

Status CheckConvolution(const InferContext& context, const char* form, const Extent& rows) {
  const TensorType &x = context.operands[0], &w = context.operands[1];
  const int64_t groups = context.attributes.Int("groups");
  if (x.rank() < 3 || x.rank() > 5) return context.ShapeError(0, "[N, C, s..] of 1 to 3 spatial dimensions");
  if (w.rank() != x.rank()) return context.ShapeError(1, absl::StrFormat("rank %d: %s", x.rank(), form));
  for (size_t d = 0; d < w.dims.size(); ++d) {
    if (!w.dims[d].is_constant()) return context.ShapeError(1, "extents that are known");
    if (d >= 2 && !AllIn({w.dims[d].constant()}, 1))
      return context.ShapeError(1, "1 element or more along each spatial dimension, and at most 2^20");
  }
  if (groups < 1 || w.dims[0].constant() % groups != 0)
    return context.AttributeError("groups", "a divisor of the first extent of w");
  if (context.operands.size() > 2 && (context.operands[2].rank() != 1 || context.operands[2].dims[0] != rows))
    return context.ShapeError(2, absl::StrFormat("[%s]", rows.ToString()));
  return absl::OkStatus();
}

Value BiasOfChannels(Expansion& e, Value bias, int rank) {
  std::vector<Extent> channels(rank - 1, Extent(1));
  channels[0] = e.type(bias).dims[0];
  return e.Sized(e.Wide(bias), std::move(channels));
}

ImageAxes::ImageAxes(const Attributes& attributes, size_t rank)
    : channels(attributes.Bool("channels_last") ? rank - 1 : 1), spatial(attributes.Bool("channels_last") ? 1 : 2) {}

int64_t AxisWithChannelsLast(int64_t axis, size_t rank) {
  const int64_t from_start = FromStart(axis, rank);
  if (from_start == 0) return 0;
  return from_start == 1 ? static_cast<int64_t>(rank) - 1 : from_start - 1;
}

std::optional<Attributes> AxisChannelsLast(const Node& node, std::span<const TensorType> operands) {
  Attributes attributes = node.attributes;
  attributes.Set("axis", AxisWithChannelsLast(attributes.Int("axis"), operands[0].dims.size()));
  return attributes;
}

AttrDef ChannelsLastAttribute() {
  return {.name = "channels_last",
          .kind = AttrKind::kBool,
          .default_value = false,
          .doc = "images are [N, s.., C], not [N, C, s..]"};
}

Attributes WithChannelsLast(const Node& node) {
  Attributes attributes = node.attributes;
  attributes.Set("channels_last", true);
  return attributes;
}

std::vector<int64_t> LastFromFirst(size_t rank) {
  std::vector<int64_t> perm(rank);
  for (size_t d = 1; d + 1 < rank; ++d) perm[d] = static_cast<int64_t>(d) + 1;
  perm[rank - 1] = 1;
  return perm;
}

std::vector<int64_t> FirstFromLast(size_t rank) {
  std::vector<int64_t> perm(rank);
  perm[1] = static_cast<int64_t>(rank) - 1;
  for (size_t d = 2; d < rank; ++d) perm[d] = static_cast<int64_t>(d) - 1;
  return perm;
}

Attributes AttributesOf(const Window& window) {
  std::vector<int64_t> pads = window.low;
  pads.insert(pads.end(), window.high.begin(), window.high.end());
  return {{"strides", window.strides}, {"pads", pads}, {"dilations", window.dilations}};
}

Status CheckWindow(const InferContext& context, size_t spatial, const Window& window) {
  const auto numbers = [&](const char* of, size_t count, const char* low) {
    return context.AttributeError(of, absl::StrFormat("%d numbers of %s or more, and at most 2^20", count, low));
  };
  if (window.kernel.size() != spatial || !AllIn(window.kernel, 1)) return numbers("kernel", spatial, "1");
  if (window.strides.size() != spatial || !AllIn(window.strides, 1)) return numbers("strides", spatial, "1");
  if (window.dilations.size() != spatial || !AllIn(window.dilations, 1)) return numbers("dilations", spatial, "1");
  if (window.low.size() != spatial || window.high.size() != spatial || !AllIn(window.low, 0) || !AllIn(window.high, 0))
    return numbers("pads", 2 * spatial, "0");
  return absl::OkStatus();
}

StatusOr<std::vector<Extent>> WindowPlaces(const InferContext& context, int operand, std::span<const Extent> dims,
                                           const Window& window) {
  QUERN_RETURN_IF_ERROR(CheckWindow(context, dims.size(), window));
  std::vector<Extent> places;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Extent room = dims[d] + Extent(window.low[d] + window.high[d] - window.Span(d));
    if (!context.AtLeast(room, Extent(0))) {
      return context.ShapeError(operand,
                                absl::StrFormat("at least %d elements where a window of %d slides",
                                                window.Span(d) - window.low[d] - window.high[d], window.Span(d)));
    }
    places.push_back(room.FloorDividedBy(window.strides[d]) + Extent(1));
  }
  return places;
}

}  // namespace quern::ir
