// Sample: a token of each row of logits, drawn by what the logits say:
//
//   x / max(temperature, 1e-6); of these the top_k largest, and those that equal the last of them; softmax; of what is
//   left, the likeliest first and of equals the first, the fewest that make up top_p, one at least; of them the first
//   token whose probability, added to those before it, exceeds u times that of all
//
// u is one number for each row (ir/philox.h). top_k 0 takes all; temperature 0 is the first of the largest. What is no
// finite number is never drawn; a row without any gives 0.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/philox.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

constexpr double kColdest = 1e-6;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& logits = context.operands[0];
  const Attributes& attributes = context.attributes;
  if (logits.rank() != 2 || !logits.dims[1].is_constant() || logits.dims[1].constant() < 1)
    return context.ShapeError(0, "[B, V], V a constant of 1 or more");
  QUERN_RETURN_IF_ERROR(CheckRandomState(context, 1));
  if (attributes.Int("top_k") < 0) return context.AttributeError("top_k", "0 or more");
  if (!(attributes.Float("top_p") >= 0)) return context.AttributeError("top_p", "0 or more");
  if (!(attributes.Float("temperature") >= 0)) return context.AttributeError("temperature", "0 or more");
  const DType dtype = attributes.Type("dtype");
  if (dtype != DType::kI32 && dtype != DType::kI64) return context.AttributeError("dtype", "i32 or i64");
  return std::vector<TensorType>{{dtype, {logits.dims[0]}}, RandomStateType()};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Attributes& attributes = node.attributes;
  const Extent batch = node.results[0].dims[0], tokens = e.type(inputs[0]).dims[1];
  const DType dtype = attributes.Type("dtype");
  const int64_t top_k = attributes.Int("top_k");
  const double top_p = attributes.Float("top_p"), temperature = attributes.Float("temperature");
  const std::vector<int64_t> last = {-1};
  const Value given = e.Wide(inputs[0]);
  if (!e.ok()) return e.Finish({});
  const DType wide = e.type(given).dtype;
  const auto number = [&](double value) { return e.Scalar(value, wide); };
  const auto op = [&](const char* name, Value a, Value b) { return e.Add(name, {a, b}); };
  const auto where = [&](Value condition, Value yes, Value no) { return e.Add("Where", {condition, yes, no}); };
  const Value finite = op("Lt", e.Add("Abs", {given}), number(INFINITY));
  Value x = where(finite, given, number(-INFINITY));
  const auto [unit, state] = RandomUnits(graph, e, inputs[1], {batch, Extent(1)}, origin);
  if (temperature == 0) {
    const Value largest = e.Add("ArgMax", {x}, {{"axis", int64_t{-1}}, {"keep_dim", false}});
    return e.Finish({e.Stored(largest, dtype), state});
  }
  x = op("Div", x, number(std::max(temperature, kColdest)));
  if (top_k > 0 && top_k < tokens.constant()) {
    const Value best = e.Add("TopK", {x}, {{"k", top_k}});
    const Value least = e.Add("Narrow", {best},
                              {{"axis", int64_t{-1}},
                               {"start", std::vector<Extent>{Extent(top_k - 1)}},
                               {"length", std::vector<Extent>{Extent(1)}}});
    x = where(op("Ge", x, least), x, number(-INFINITY));
  }
  const Value largest = e.Reduced("max", x, last);
  const Value some = op("Gt", largest, number(-INFINITY));
  Value p = e.Add("Exp", {op("Sub", x, where(some, largest, number(0)))});
  const auto token = [&](DType type) {
    return e.Add("Iota", {}, {{"shape", std::vector<Extent>{batch, tokens}}, {"axis", int64_t{1}}, {"dtype", type}});
  };
  if (top_p < 1) {
    // Whether the one at a place in order is kept; the least of those, and which of equals is the last of them.
    const Value sorted = e.Add("Sort", {p}, {{"descending", true}}), from = {sorted.node, 1};
    const Value before = e.Add("CumSum", {sorted}, {{"axis", int64_t{-1}}, {"exclusive", true}});
    const Value enough = op("Mul", e.Reduced("sum", p, last), number(top_p));
    const Value first = op("Lt", token(wide), number(0.5));
    const Value kept = op("BitOr", op("Lt", before, enough), first);
    const Value least = e.Reduced("min", where(kept, sorted, number(INFINITY)), last);
    const Value place = e.Stored(from, wide);
    const Value equal = op("BitAnd", kept, op("Eq", sorted, least));
    const Value end = e.Reduced("max", where(equal, place, number(-1)), last);
    const Value stays = op("BitOr", op("Gt", p, least), op("BitAnd", op("Eq", p, least), op("Le", token(wide), end)));
    p = where(stays, p, number(0));
  }
  const Value sums = e.Add("CumSum", {p}, {{"axis", int64_t{-1}}});
  const Value total = e.Add("Narrow", {sums},
                            {{"axis", int64_t{-1}},
                             {"start", std::vector<Extent>{tokens - Extent(1)}},
                             {"length", std::vector<Extent>{Extent(1)}}});
  const Value passed = op("Le", sums, op("Mul", total, e.Stored(unit, wide)));
  const Value count = e.Reduced("sum", e.Stored(passed, DType::kI64), last);
  const Value drawn = e.Add("Mul", {count, e.Stored(some, DType::kI64)});
  return e.Finish({e.Stored(e.Sized(drawn, {batch}), dtype), state});
}

Status Reference(RefContext& context) {
  const Attributes& attributes = context.node.attributes;
  const RefTensor& logits = *context.operands[0];
  const int64_t batch = logits.dims[0], tokens = logits.dims[1], top_k = attributes.Int("top_k");
  const double top_p = attributes.Float("top_p"), temperature = attributes.Float("temperature");
  const std::vector<uint32_t> words = ReferenceWords(*context.operands[1], batch, context.results[1]);
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<int64_t> order;  // tokens that may be drawn, the likeliest first
    for (int64_t t = 0; t < tokens; ++t) {
      if (std::isfinite(logits.data[b * tokens + t])) order.push_back(t);
    }
    const auto logit = [&](int64_t t) { return logits.data[b * tokens + t] / std::max(temperature, kColdest); };
    std::sort(order.begin(), order.end(),
              [&](int64_t s, int64_t t) { return logit(s) != logit(t) ? logit(s) > logit(t) : s < t; });
    if (order.empty() || temperature == 0) {
      context.results[0].SetInteger(b, order.empty() ? 0 : order[0]);
      continue;
    }
    if (top_k > 0 && top_k < static_cast<int64_t>(order.size())) {
      const double least = logit(order[top_k - 1]);
      std::erase_if(order, [&](int64_t t) { return logit(t) < least; });
    }
    const double largest = logit(order[0]);
    const auto weight = [&](int64_t t) { return std::exp(logit(t) - largest); };
    const auto sum = [&] {
      return std::accumulate(order.begin(), order.end(), 0.0, [&](double s, int64_t t) { return s + weight(t); });
    };
    if (top_p < 1) {
      const double enough = top_p * sum();
      double so_far = weight(order[0]);
      size_t count = 1;
      while (count < order.size() && so_far < enough) so_far += weight(order[count++]);
      order.resize(count);
    }
    const double target = sum() * ReferenceUnit(words[b]);
    std::sort(order.begin(), order.end());
    double so_far = 0;
    int64_t drawn = order.back();
    for (const int64_t t : order) {
      so_far += weight(t);
      if (so_far <= target) continue;
      drawn = t;
      break;
    }
    context.results[0].SetInteger(b, drawn);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_sample() {
  static const OpDef* const op = Make({
      .name = "Sample",
      .doc = "a token of each row of logits, drawn from the likeliest, and the state behind the numbers that decide it",
      .kind = OpKind::kComposite,
      .operands = {{.name = "logits", .kind = OperandKind::kFloat, .shape = "[B, V]"}, RandomStateOperand()},
      .attributes = {{.name = "top_k", .kind = AttrKind::kInt, .default_value = int64_t{0}, .doc = "0: all"},
                     {.name = "top_p", .kind = AttrKind::kFloat, .default_value = 1.0},
                     {.name = "temperature", .kind = AttrKind::kFloat, .default_value = 1.0},
                     {.name = "dtype", .kind = AttrKind::kDType, .default_value = DType::kI64, .doc = "i32 or i64"}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .examples = {{{"f32[3, 17]", "u32[6]"}, {{"top_k", int64_t{5}}, {"top_p", 0.75}}},
                   {{"f32[S, 5]", "u32[6]"}, {{"temperature", 0.0}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
