// Unique: the different elements of a vector, smallest first; of each where it stood first and how often it is there;
// and of each element of x which of them it is. NaNs are one element, the last, as numpy has them; 0 and -0 are one.
//
//   x = 3 1 3 7      values = 1 3 7 0    first = 1 0 3 0    inverse = 1 0 1 2    counts = 1 2 1 0    count = 3

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/backward.h"
#include "ir/kept.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (x.rank() != 1) return context.ShapeError(0, "[N]");
  const TensorType places = {DType::kI64, x.dims};
  return std::vector<TensorType>{x, places, places, places, CountType()};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node&, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType type = graph.type(inputs[0]);
  const Value values = e.Add("Sort", {inputs[0]}), order = {values.node, 1};
  if (!e.ok()) return e.Finish({});
  // The element before each in order; of the first, whatever.
  const Value numbers = e.Iota({type.dims[0]}), zero = IntegerOf(e, 0);
  const Value before =
      e.Add("GatherElements", {values, e.Add("Sub", {numbers, e.Add("Min", {numbers, IntegerOf(e, 1)})})});
  Value differs = e.Add("Ne", {values, before});
  if (IsFloat(type.dtype)) {
    const auto is_nan = [&](Value value) { return e.Add("IsNaN", {value}); };
    const Value neither = e.Add("Not", {e.Add("BitAnd", {is_nan(values), is_nan(before)})});
    differs = e.Add("BitAnd", {differs, neither});
  }
  const Kept kept = PlacesOfKept(e, e.Add("BitOr", {differs, e.Add("Eq", {numbers, zero})}));
  const Value starts = e.Add("Lt", {kept.places, e.Add("Size", {}, {{"extent", type.dims}})});
  const Value group =
      e.Add("Sub", {e.Add("CumSum", {e.Stored(starts, DType::kI64)}, {{"axis", int64_t{0}}}), IntegerOf(e, 1)});
  const Value zeros = e.Add("Expand", {zero}, {{"shape", type.dims}});
  const Value ones = e.Add("Expand", {IntegerOf(e, 1)}, {{"shape", type.dims}});
  const Value inverse = e.Add("ScatterElements", {zeros, order, group}, {{"axis", int64_t{0}}});
  const Value counts = e.Add("ScatterAdd", {ones, group}, {{"rows", type.dims}});
  return e.Finish({AtPlaces(e, values, kept), AtPlaces(e, order, kept), inverse, counts, kept.count});
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  std::vector<RefTensor>& results = context.results;
  const int64_t n = x.elements();
  const bool whole = IsInteger(x.dtype);
  const auto less = [&](int64_t a, int64_t b) {
    if (whole) return x.Integer(a) < x.Integer(b);
    return x.data[a] < x.data[b] || (std::isnan(x.data[b]) && !std::isnan(x.data[a]));
  };
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return less(a, b) || (!less(b, a) && a < b); });
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || less(order[i - 1], order[i])) {
      results[0].Take(count, x, order[i]);
      results[1].SetInteger(count++, order[i]);
    }
    results[2].SetInteger(order[i], count - 1);
    results[3].SetInteger(count - 1, results[3].Integer(count - 1) + 1);
  }
  results[4].SetInteger(0, count);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_unique() {
  static const OpDef* const op = Make({
      .name = "Unique",
      .doc = "the different elements in order, where each stood first, which each of x is, how often, and how many",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kNumeric, .shape = "[N]"}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 0,
      .onnx = "Unique",
      .examples = {{{"f32[37]"}}, {{"i64[101]"}}, {{"f16[S]"}}, {{"u8[331]"}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
