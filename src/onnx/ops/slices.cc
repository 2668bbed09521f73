// Slice and Pad, in the forms that they had.

#include <algorithm>
#include <limits>

#include "onnx/table.h"

namespace quern::onnx {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;  // at and above: "the end"

// A start or stop between 0 and `size`: negative ones count from the end. What cannot be told of symbols is taken to
// lie inside, which the op asks of sizes.
Extent Inside(const Call& c, const Extent& at, const Extent& size) {
  const SymbolRanges& ranges = c.builder.graph.symbols;
  if (at.is_constant()) {
    const int64_t value = at.constant();
    if (value >= kLargest) return size;
    if (size.is_constant()) {
      const int64_t whole = size.constant();
      return Extent(std::clamp<int64_t>(value < 0 ? std::max(value, -whole - 1) + whole : value, 0, whole));
    }
    if (value <= -kLargest) return Extent(0);
    if (value >= 0) return at;
    const Extent from_end = size + Extent(value);
    return Extent(0).ProvablyAtLeast(from_end, ranges) ? Extent(0) : from_end;
  }
  if (at.ProvablyAtLeast(size, ranges)) return size;
  if (Extent(-1).ProvablyAtLeast(at, ranges)) return at + size;
  return at;
}

void Slice(Call& c) {
  Value x = c.x(0);
  const bool attributes = c.opset < 10;
  Extents starts, ends;
  if (attributes) {
    const Ints from = c.IntList("starts"), to = c.IntList("ends");
    starts.assign(from.begin(), from.end());
    ends.assign(to.begin(), to.end());
  } else {
    if (!c.Has(1) || !c.Has(2)) return c.Fail(absl::InvalidArgumentError("starts and ends are needed"));
    starts = c.ExtentsOf(c.x(1));
    ends = c.ExtentsOf(c.x(2));
  }
  Ints axes = c.IntsFrom(attributes ? c.inputs() : 3, "axes").value_or(Ints{}), steps(starts.size(), 1);
  if (axes.empty()) {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (!attributes && c.Has(4)) steps = c.IntsOf(c.x(4));
  if (starts.size() != ends.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return c.Fail(absl::InvalidArgumentError("starts, ends, axes and steps are not as many"));
  for (size_t i = 0; i < starts.size() && c.ok(); ++i) {
    const int64_t axis = c.Axis(axes[i], c.rank(x)), step = steps[i];
    const Extent size = c.dim(x, axis);
    if (step == 0 || step < -kLargest) return c.Fail(absl::InvalidArgumentError("a step of 0"));
    if (step > 0) {
      const Extent start = Inside(c, starts[i], size);
      Extent end = Inside(c, ends[i], size);
      if (start.ProvablyAtLeast(end, c.builder.graph.symbols)) end = start;
      if (start == Extent(0) && end == size && step == 1) continue;
      x = step == 1
              ? c.Slice(x, axis, start, end - start)
              : c.Add("Slice", {x},
                      {{"axis", Ints{axis}}, {"start", Extents{start}}, {"stop", Extents{end}}, {"step", Ints{step}}});
      continue;
    }
    // Downwards: the first is at most the last element, and the stop at least the place before the first.
    Extent start = starts[i], end = ends[i];
    if (size.is_constant()) {
      const auto number = [&](const Extent& at, int64_t low) {
        if (!at.is_constant()) return at;
        const int64_t value = std::clamp(at.constant(), -kLargest, kLargest), whole = size.constant();
        return Extent(std::clamp<int64_t>(value < 0 ? value + whole : value, low, whole - 1));
      };
      start = number(start, 0);
      end = number(end, -1);
    } else {
      start = start.is_constant() && start.constant() >= kLargest ? size - Extent(1) : Inside(c, start, size);
      end = end.is_constant() && end.constant() <= -kLargest ? Extent(-1) : Inside(c, end, size);
    }
    if (end.ProvablyAtLeast(start, c.builder.graph.symbols)) {
      x = c.Slice(x, axis, Extent(0), Extent(0));
      continue;
    }
    x = c.Add("Slice", {x},
              {{"axis", Ints{axis}}, {"start", Extents{start}}, {"stop", Extents{end}}, {"step", Ints{step}}});
  }
  c.Return(x);
}

void Pad(Call& c) {
  const Value x = c.x(0);
  const bool attributes = c.opset < 11;
  const int64_t rank = c.rank(x);
  const Ints pads = c.IntsFrom(attributes ? c.inputs() : 1, "pads").value_or(Ints{});
  Ints axes;
  if (c.Has(3)) axes = c.IntsOf(c.x(3));
  if (axes.empty()) {
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  }
  if (pads.size() != 2 * axes.size()) return c.Fail(absl::InvalidArgumentError("two pads for each axis are needed"));
  Ints low(rank), high(rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = c.Axis(axes[i], rank);
    if (rank == 0) continue;
    low[axis] = pads[i];
    high[axis] = pads[i + axes.size()];
  }
  double value = 0;
  if (attributes) {
    value = c.Float("value", 0);
  } else if (c.Has(2)) {
    const std::vector<double> given = c.RealsOf(c.x(2));
    value = given.empty() ? 0 : given[0];
  }
  const std::string mode = c.Str("mode", "constant");
  const char* const ours = mode == "edge"      ? "replicate"
                           : mode == "wrap"    ? "circular"
                           : mode == "reflect" ? "reflect"
                                               : "constant";
  c.Return(c.Add("Pad", {x}, {{"low", low}, {"high", high}, {"value", value}, {"mode", std::string(ours)}}));
}

// The middle of each axis, or zeros about all of it.
void CenterCropPad(Call& c) {
  Value x = c.x(0);
  const int64_t rank = c.rank(x);
  const Ints sizes = c.IntsOf(c.x(1));
  Ints axes = c.IntList("axes"), low(rank), high(rank);
  if (axes.empty()) {
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  }
  if (axes.size() != sizes.size()) return c.Fail(absl::InvalidArgumentError("a size for each axis is needed"));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = c.Axis(axes[i], rank), more = sizes[i] - c.fixed_dim(x, axis);
    if (!c.ok()) return;
    if (more < 0) x = c.Slice(x, axis, Extent(-more / 2), Extent(sizes[i]));
    if (more > 0) low[axis] = more / 2, high[axis] = more - more / 2;
  }
  c.Return(c.Add("Pad", {x}, {{"low", low}, {"high", high}}));
}

constexpr Importer kRows[] = {
    {"CenterCropPad", CenterCropPad, "", 2},
    {"Pad", Pad},
    {"Slice", Slice},
};

}  // namespace

std::span<const Importer> SliceImporters() { return kRows; }

}  // namespace quern::onnx
