// Pad: `low` and `high` elements more before and after, per dimension: `value`, or elements of x. A negative number
// takes elements away, before anything else.
//
//   constant    v v a b c d v        reflect     c b a b c d c    the edge is not repeated
//   replicate   a a a b c d d        circular    c d a b c d a

#include <algorithm>

#include "ir/composite.h"
#include "ir/fill.h"
#include "ir/identity.h"
#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  const std::vector<int64_t>&low = context.attributes.Ints("low"), &high = context.attributes.Ints("high");
  const std::string& mode = context.attributes.String("mode");
  for (const char* side : {"low", "high"}) {
    if (context.attributes.Ints(side).size() != result.dims.size())
      return context.AttributeError(side, absl::StrFormat("%d numbers", result.rank()));
  }
  for (size_t d = 0; d < low.size(); ++d) {
    const Extent& dim = result.dims[d];
    const auto fewer = [](int64_t n) { return Extent(std::max<int64_t>(0, -n)); };
    const Extent left = dim - fewer(low[d]) - fewer(high[d]);
    if (!context.AtLeast(left, 0))
      return context.AttributeError(
          low[d] < 0 ? "low" : "high",
          absl::StrFormat("at most the %s elements of axis %d taken away", dim.ToString(), d));
    for (const auto& [side, count] : {std::pair("low", low[d]), std::pair("high", high[d])}) {
      if (count <= 0 || mode == "constant") continue;
      const Extent needed = mode == "reflect" ? Extent(count + 1) : mode == "circular" ? Extent(count) : Extent(1);
      if (!context.AtLeast(left, needed))
        return context.AttributeError(
            side, absl::StrFormat("no more than %s elements of axis %d have for \"%s\"", left.ToString(), d, mode));
    }
    result.dims[d] = left + Extent(std::max<int64_t>(0, low[d])) + Extent(std::max<int64_t>(0, high[d]));
  }
  return std::vector<TensorType>{std::move(result)};
}

// Where the result is not the operand with one value around it.
bool IsJoined(const Node& node) {
  const auto negative = [](int64_t n) { return n < 0; };
  const std::vector<int64_t>&low = node.attributes.Ints("low"), &high = node.attributes.Ints("high");
  return node.attributes.String("mode") != "constant" || std::any_of(low.begin(), low.end(), negative) ||
         std::any_of(high.begin(), high.end(), negative);
}

// What stands on one side of x along an axis: `count` elements of it.
Value Side(Expansion& e, Value x, int64_t axis, int64_t count, const std::string& mode, bool before) {
  if (!e.ok()) return x;
  const std::vector<Extent> dims = e.type(x).dims;
  const Extent size = dims[axis];
  const auto part = [&](const Extent& start, int64_t length) {
    return e.Add("Narrow", {x},
                 {{"axis", axis}, {"start", std::vector<Extent>{start}}, {"length", std::vector<Extent>{length}}});
  };
  if (mode == "circular") return part(before ? size - count : Extent(0), count);
  if (mode == "reflect")
    return e.Add("Reverse", {part(before ? Extent(1) : size - 1 - count, count)},
                 {{"axes", std::vector<int64_t>{axis}}});
  std::vector<Extent> shape = dims;
  shape[axis] = count;
  return e.Add("Expand", {part(before ? Extent(0) : size - 1, 1)}, {{"shape", shape}});
}

constexpr int64_t kLongestPicked = 1 << 16;  // numbers that the graph holds

// Along an axis of known extent: slices of x picked by constants, which fuses with what copies the slices.
Value Picked(Expansion& e, Value x, int64_t axis, int64_t low, int64_t high, const std::string& mode) {
  if (!e.ok() || low + high == 0) return x;
  const int64_t size = e.type(x).dims[axis].constant();
  std::vector<int64_t> places;
  const bool reflect = mode == "reflect", circular = mode == "circular";
  for (int64_t i = low; i > 0; --i) places.push_back(reflect ? i : circular ? size - i : 0);
  for (int64_t i = 0; i < size; ++i) places.push_back(i);
  for (int64_t i = 0; i < high; ++i) places.push_back(reflect ? size - 2 - i : circular ? i : size - 1);
  return e.Add("Gather", {x, e.Integers(std::move(places))}, {{"axis", axis}});
}

// x with its own elements around it: joined along the last axis that has some, whose rows are copied, and picked along
// the others; one that is very long or known at the run alone is joined too.
Value Joined(Expansion& e, Value x, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
             const std::string& mode) {
  const auto padded = [&](size_t d) { return low[d] + high[d] > 0; };
  size_t last = low.size();
  while (last > 0 && !padded(last - 1)) --last;
  std::vector<size_t> picked;
  for (size_t d = 0; d < last && e.ok(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    if (!padded(d)) continue;
    const Extent& size = e.type(x).dims[d];
    if (d + 1 < last && size.is_constant() && size.constant() <= kLongestPicked) {
      picked.push_back(d);
      continue;
    }
    std::vector<Value> parts;
    if (low[d] > 0) parts.push_back(Side(e, x, axis, low[d], mode, /*before=*/true));
    parts.push_back(x);
    if (high[d] > 0) parts.push_back(Side(e, x, axis, high[d], mode, /*before=*/false));
    if (d + 1 == last) {
      for (Value& part : parts) {
        for (const size_t p : picked) part = Picked(e, part, static_cast<int64_t>(p), low[p], high[p], mode);
      }
    }
    x = e.Add("Concat", std::move(parts), {{"axis", axis}});
  }
  return x;
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::string& mode = node.attributes.String("mode");
  std::vector<int64_t> low = node.attributes.Ints("low"), high = node.attributes.Ints("high");
  Value x = inputs[0];
  for (size_t d = 0; d < low.size(); ++d) {
    const int64_t from = std::max<int64_t>(0, -low[d]), less = std::max<int64_t>(0, -high[d]);
    low[d] = std::max<int64_t>(0, low[d]);
    high[d] = std::max<int64_t>(0, high[d]);
    const auto axis = static_cast<int64_t>(d);
    if (from + less > 0 && e.ok())
      x = e.Add("Narrow", {x},
                {{"axis", axis},
                 {"start", std::vector<Extent>{from}},
                 {"length", std::vector<Extent>{e.type(x).dims[d] - Extent(from + less)}}});
  }
  if (mode != "constant") return e.Finish({Joined(e, x, low, high, mode)});
  return e.Finish({e.Add("Pad", {x}, {{"low", low}, {"high", high}, {"value", node.attributes.Float("value")}})});
}

kir::ExprRef Map(MapContext& context) {
  namespace kb = kir::build;
  const std::vector<int64_t>& low = context.node().attributes.Ints("low");
  kir::Index at = context.index();
  for (size_t d = 0; d < low.size(); ++d) at[d] = at[d] - static_cast<double>(low[d]);
  const DType dtype = context.result_type().dtype;
  return context.Operand(0, std::move(at),
                         kb::CastTo(dtype, kb::Num(context.node().attributes.Float("value"), DType::kF64)));
}

// Below and above along each dimension, within what the dimensions before it leave; and the operand.
std::vector<Piece> Pieces(const Node& node, std::span<const TensorType> operands) {
  namespace kb = kir::build;
  const std::vector<int64_t>& low = node.attributes.Ints("low");
  const kir::ExprRef fill = kb::CastTo(node.results[0].dtype, kb::Num(node.attributes.Float("value"), DType::kF64));
  Piece rest;
  for (const Extent& dim : node.results[0].dims) rest.ranges.emplace_back(0, dim);
  std::vector<Piece> pieces;
  for (size_t d = 0; d < low.size(); ++d) {
    const Extent first(low[d]), last = first + operands[0].dims[d];
    for (const auto& [from, to] : {std::pair(Extent(0), first), std::pair(last, node.results[0].dims[d])}) {
      if (from == to) continue;
      Piece slab = rest;
      slab.ranges[d] = {from, to};
      slab.fill = fill;
      pieces.push_back(std::move(slab));
    }
    rest.ranges[d] = {first, last};
  }
  rest.operand = 0;
  pieces.push_back(std::move(rest));
  return pieces;
}

// The place in 0 to size - 1 that stands for one before or behind, or -1 for none.
int64_t Inside(int64_t place, int64_t size, const std::string& mode) {
  if (place >= 0 && place < size) return place;
  if (mode == "replicate") return std::clamp<int64_t>(place, 0, size - 1);
  if (mode == "reflect") return place < 0 ? -place : 2 * (size - 1) - place;
  return mode == "circular" ? (place + size) % size : -1;
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const std::vector<int64_t>&low = context.node.attributes.Ints("low"), &high = context.node.attributes.Ints("high");
  const std::string& mode = context.node.attributes.String("mode");
  const double value = context.node.attributes.Float("value");
  const int64_t elements = y.elements();
  std::vector<int64_t> index(y.dims.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    std::vector<int64_t> place = index;
    bool inside = true;
    for (size_t d = 0; d < place.size(); ++d) {
      const int64_t cut = std::min<int64_t>(0, low[d]), left = x.dims[d] + cut + std::min<int64_t>(0, high[d]);
      place[d] = Inside(index[d] - std::max<int64_t>(0, low[d]), left, mode);
      inside = inside && place[d] >= 0;
      place[d] -= cut;
    }
    if (inside)
      y.Take(at, x, x.Offset(place));
    else
      Fill(y, at, value);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_pad() {
  static const OpDef* const op = Make({
      .name = "Pad",
      .doc = "elements of `value`, or of x, before and after, per dimension",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "low", .kind = AttrKind::kInts, .doc = "negative: so many less"},
                     {.name = "high", .kind = AttrKind::kInts},
                     {.name = "value", .kind = AttrKind::kFloat, .default_value = 0.0},
                     {.name = "mode",
                      .kind = AttrKind::kString,
                      .default_value = std::string("constant"),
                      .choices = {"constant", "reflect", "replicate", "circular"}}},
      .infer = Infer,
      .map = Map,
      .pieces = Pieces,
      .identity = Unchanged,
      .reference = Reference,
      .expand = Expand,
      .expands = IsJoined,
      .onnx = "Pad",
      .examples = {{{"f32[2, 3]"}, {{"low", std::vector<int64_t>{0, 1}}, {"high", std::vector<int64_t>{2, 0}}}},
                   {{"i16[5, S]"},
                    {{"low", std::vector<int64_t>{-2, 1}}, {"high", std::vector<int64_t>{1, -1}}, {"value", 3.0}}},
                   {{"f32[2, 5, 7]"},
                    {{"low", std::vector<int64_t>{0, 4, 2}},
                     {"high", std::vector<int64_t>{1, 0, 6}},
                     {"mode", std::string("circular")}}},
                   {{"f32[3, 5, 7]"},
                    {{"low", std::vector<int64_t>{0, 4, -1}},
                     {"high", std::vector<int64_t>{0, 3, 2}},
                     {"mode", std::string("reflect")}}},
                   {{"f16[S, 3]"},
                    {{"low", std::vector<int64_t>{2, 0}},
                     {"high", std::vector<int64_t>{5, 1}},
                     {"mode", std::string("replicate")}}}},
  });
  return *op;
}

}  // namespace quern::ir
