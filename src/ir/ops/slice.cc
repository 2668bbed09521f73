// Slice: elements start, start + step, ... before stop along each of some axes. Steps may be negative: then elements
// run down, and stop is the one below the last. Starts and stops may be symbolic, and count from the beginning alone:
// what another format counts from the end, or lets reach outside, its importer resolves.
//
//   Slice(x) {axis = <0, 2>, start = [1, S - 1], stop = [4, -1], step = <1, -2>}

#include <algorithm>

#include "ir/identity.h"
#include "ir/pairs.h"
#include "ir/shape.h"
#include "ir/window.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

struct Range {
  int64_t axis, step;
  Extent start;
};

// By axis that is sliced. Precondition: inference took them.
std::vector<Range> RangesOf(const Attributes& attributes, size_t rank) {
  const std::vector<int64_t>&axes = attributes.Ints("axis"), &steps = attributes.Ints("step");
  std::vector<Range> ranges;
  for (size_t i = 0; i < axes.size(); ++i)
    ranges.push_back({FromStart(axes[i], rank), steps.empty() ? 1 : steps[i], attributes.Extents("start")[i]});
  return ranges;
}

// Also the largest number is the end.
bool IsEnd(const Extent& stop) { return stop == Extent(INT64_MAX); }

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  const std::vector<int64_t>&axes = context.attributes.Ints("axis"), &steps = context.attributes.Ints("step");
  const std::vector<Extent>&starts = context.attributes.Extents("start"), &stops = context.attributes.Extents("stop");
  const auto counted = [&](size_t count, bool may_lack) { return count == axes.size() || (may_lack && count == 0); };
  const std::string as_many = absl::StrFormat("one for each of %d axes", axes.size());
  if (!counted(starts.size(), false)) return context.AttributeError("start", as_many);
  if (!counted(stops.size(), true)) return context.AttributeError("stop", as_many);
  if (!counted(steps.size(), true)) return context.AttributeError("step", as_many);
  for (size_t i = 0; i < axes.size(); ++i) {
    QUERN_ASSIGN(const int axis, AxisOf(context, "axis", axes[i]));
    for (size_t j = 0; j < i; ++j) {
      if (FromStart(axes[j], result.dims.size()) == axis) return context.AttributeError("axis", "each axis once");
    }
    const int64_t step = steps.empty() ? 1 : steps[i];
    if (step == 0 || step == INT64_MIN) return context.AttributeError("step", "no 0");
    const Extent& size = context.operands[0].dims[axis];
    // Down, from the last to below the first, is up from the one above.
    const bool up = step > 0, to_end = stops.empty() || IsEnd(stops[i]);
    const Extent first = up       ? starts[i]
                         : to_end ? Extent(0)
                                  : stops[i] + 1,
                 end = !up      ? starts[i] + 1
                       : to_end ? size
                                : stops[i];
    const char *low = up ? "start" : "stop", *high = up ? "stop" : "start";
    const int64_t off = up ? 0 : -1;
    if (!context.AtLeast(first, 0) || !context.AtLeast(size, first))
      return context.AttributeError(low, absl::StrFormat("%d to %s", off, (size + off).ToString()));
    if (!context.AtLeast(end, first) || !context.AtLeast(size, end))
      return context.AttributeError(high,
                                    absl::StrFormat("%s to %s", (first + off).ToString(), (size + off).ToString()));
    result.dims[axis] = (end - first).CeilDividedBy(up ? step : -step);
  }
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  kir::Index at = context.index();
  for (const Range& range : RangesOf(context.node().attributes, at.size())) {
    kir::ExprRef& along = at[range.axis];
    along = along * static_cast<double>(range.step) + kir::build::FromExtent(range.start);
  }
  return context.Operand(0, std::move(at));
}

std::optional<Strides> Steps(const Node& node, const Strides& x) {
  Strides made{node.results[0].dims, x.steps, x.offset};
  for (const Range& range : RangesOf(node.attributes, x.dims.size())) {
    if (range.step < 0) return std::nullopt;
    Extent& step = made.steps[range.axis];
    made.offset = made.offset + step * range.start;
    step = step * range.step;
  }
  return made;
}

Status Reference(RefContext& context) {
  const Attributes& attributes = context.node.attributes;
  RefTensor& y = context.results[0];
  const std::vector<int64_t> starts = SizesOf(attributes.Extents("start"), context.binding);
  MoveElements(*context.operands[0], y, [&](std::vector<int64_t>& index) {
    for (size_t i = 0; i < starts.size(); ++i) {
      int64_t& along = index[FromStart(attributes.Ints("axis")[i], index.size())];
      along = starts[i] + along * (attributes.Ints("step").empty() ? 1 : attributes.Ints("step")[i]);
    }
  });
  return absl::OkStatus();
}

std::optional<Attributes> ChannelsLast(const Node& node, std::span<const TensorType> operands) {
  Attributes attributes = node.attributes;
  std::vector<int64_t> axes = attributes.Ints("axis");
  for (int64_t& axis : axes) axis = AxisWithChannelsLast(axis, operands[0].dims.size());
  attributes.Set("axis", std::move(axes));
  return attributes;
}

// Every element where it was.
Replacement Identity(const IdentityContext& context) {
  const std::vector<int64_t>& steps = context.node.attributes.Ints("step");
  if (std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step < 0; })) return std::nullopt;
  return Unchanged(context);
}

}  // namespace

const OpDef& Op_slice() {
  static const OpDef* const op = Make({
      .name = "Slice",
      .doc = "elements start, start + step, ... before stop along each axis given",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInts, .doc = "one or several"},
                     {.name = "start", .kind = AttrKind::kExtents, .doc = "by axis"},
                     {.name = "stop",
                      .kind = AttrKind::kExtents,
                      .default_value = std::vector<Extent>{},
                      .doc = "by axis; none: all up to the end, or down to the beginning"},
                     {.name = "step",
                      .kind = AttrKind::kInts,
                      .default_value = std::vector<int64_t>{},
                      .doc = "by axis, negative: downwards; none: 1"}},
      .infer = Infer,
      .map = Map,
      .strides = Steps,
      .channels_last = ChannelsLast,
      .identity = Identity,
      .reference = Reference,
      .pairs = SameOfPairs,
      .onnx = "Slice",
      .examples = {{{"f32[2, 5]"}, {{"axis", int64_t{1}}, {"start", int64_t{1}}, {"stop", int64_t{4}}}},
                   {{"f32[S, 7, 11]"},
                    {{"axis", std::vector<int64_t>{0, -1}},
                     {"start", std::vector<Extent>{Extent::Symbol("S") - 1, 10}},
                     {"step", std::vector<int64_t>{-1, -3}}}},
                   {{"u16[3, S]"},
                    {{"axis", std::vector<int64_t>{1, 0}},
                     {"start", std::vector<Extent>{0, 2}},
                     {"stop", std::vector<Extent>{Extent::Symbol("S"), 0}},
                     {"step", std::vector<int64_t>{2, -1}}}}},
  });
  return *op;
}

}  // namespace quern::ir
