#include "onnx/attention.h"

#include <cmath>

namespace quern::onnx {

Value Heads(Call& c, Value packed, int64_t heads) {
  const int64_t width = c.fixed_dim(packed, 2);
  if (heads < 1 || width % heads != 0) {
    c.Fail(absl::InvalidArgumentError(absl::StrFormat("%d heads do not divide %d", heads, width)));
    return packed;
  }
  const Extents dims = {c.dim(packed, 0), c.dim(packed, 1), Extent(heads), Extent(width / heads)};
  return c.Transpose(c.Reshape(packed, dims), {0, 2, 1, 3});
}

Value Packed(Call& c, Value heads) {
  return c.Reshape(c.Transpose(heads, {0, 2, 1, 3}),
                   {c.dim(heads, 0), c.dim(heads, 2), c.dim(heads, 1) * c.dim(heads, 3)});
}

Value Attend(Call& c, Value q, Value k, Value v, const Attending& how) {
  const int64_t heads = c.fixed_dim(q, 1), shared = c.fixed_dim(k, 1), size = c.fixed_dim(q, 3);
  const double scale = how.scale != 0 ? how.scale : 1 / std::sqrt(static_cast<double>(size));
  std::optional<Value> bias, allowed;
  for (const Value value : how.biases) bias = bias ? c.Add("Add", {*bias, value}) : value;
  for (const Value value : how.allowed) allowed = allowed ? c.Add("BitAnd", {*allowed, value}) : value;
  if (bias && allowed) {
    bias = c.Add("Where", {*allowed, *bias, c.Like(-INFINITY, *bias)});
    allowed.reset();
  }
  if (c.dim(v, 3) == Extent(size)) {
    Values operands = {q, k, v};
    if (bias || allowed) operands.push_back(bias ? *bias : *allowed);
    return c.Add("Attention", operands,
                 {{"heads", heads},
                  {"kv_heads", shared},
                  {"head_dim", size},
                  {"mask", std::string(operands.size() > 3 ? "bias" : "none")},
                  {"scale", scale},
                  {"softcap", how.softcap},
                  {"layout", std::string("bhsd")}});
  }
  // Values of another size: the products themselves.
  if (heads != shared) c.Fail("values of another size than the keys', of groups of heads, have no op");
  Value scores = c.Add("MatMul", {q, c.Transpose(k, {0, 1, 3, 2})});
  scores = c.Add("Mul", {scores, c.Like(scale, scores)});
  if (how.softcap > 0) {
    const Value cap = c.Like(how.softcap, scores);
    scores = c.Add("Mul", {c.Add("Tanh", {c.Add("Div", {scores, cap})}), cap});
  }
  if (bias) scores = c.Add("Add", {scores, c.Cast(*bias, c.dtype(scores))});
  if (allowed) scores = c.Add("Where", {*allowed, scores, c.Like(-INFINITY, scores)});
  return c.Add("MatMul", {c.Add("Softmax", {scores}), v});
}

Value Causal(Call& c, const Extent& queries, const Extent& keys, Value past, int64_t window) {
  const auto index = [&](int64_t axis) {
    return c.Add("Iota", {}, {{"shape", Extents{queries, keys}}, {"axis", axis}, {"dtype", DType::kI64}});
  };
  Value before = c.Cast(past, DType::kI64);
  if (c.rank(before) == 1) before = c.Reshape(before, {c.dim(before, 0), Extent(1), Extent(1), Extent(1)});
  const Value place = c.Add("Add", {index(0), before}), key = index(1);
  const Value seen = c.Add("Le", {key, place});
  if (window <= 0) return seen;
  const Value first = c.Add("Sub", {place, c.Scalar(static_cast<double>(window), DType::kI64)});
  return c.Add("BitAnd", {seen, c.Add("Gt", {key, first})});
}

Value Joined(Call& c, Value past, Value now) { return c.Add("Concat", {past, now}, {{"axis", int64_t{2}}}); }

Extent JoinPast(Call& c, int past, Value& k, Value& v) {
  if (!c.Has(past) || !c.Has(past + 1)) return Extent(0);
  k = Joined(c, c.x(past), k);
  v = Joined(c, c.x(past + 1), v);
  return c.dim(c.x(past), 2);
}

Value BesideHeads(Call& c, Value rows) {
  return c.Reshape(rows, {c.dim(rows, 0), Extent(1), c.dim(rows, 1), c.dim(rows, 2)});
}

Value TableAt(Call& c, Value table, Value positions) {
  return BesideHeads(c, c.Add("Gather", {table, positions}, {{"axis", int64_t{0}}}));
}

Value Rotated(Call& c, Value x, Value cos, Value sin, bool interleaved) {
  const int64_t half = c.fixed_dim(cos, 3), size = c.fixed_dim(x, 3);
  if (half < 1 || 2 * half > size) {
    c.Fail(absl::InvalidArgumentError("the tables of cosines and sines are wider than a head"));
    return x;
  }
  const Extents dims = c.type(x).dims;
  const Extents pairs = {dims[0], dims[1], dims[2], Extent(half), Extent(2)};
  const Extents one = {dims[0], dims[1], dims[2], Extent(half)};
  const Value turned = 2 * half == size ? x : c.Slice(x, 3, Extent(0), Extent(2 * half));
  const auto part = [&](int64_t i) {
    if (interleaved) return c.Reshape(c.Slice(c.Reshape(turned, pairs), 4, Extent(i), Extent(1)), one);
    return c.Slice(turned, 3, Extent(i * half), Extent(half));
  };
  const Value a = part(0), b = part(1);
  const Value left = c.Add("Sub", {c.Add("Mul", {a, cos}), c.Add("Mul", {b, sin})});
  const Value right = c.Add("Add", {c.Add("Mul", {b, cos}), c.Add("Mul", {a, sin})});
  Value y;
  if (interleaved) {
    Extents last = one;
    last.emplace_back(1);
    y = c.Add("Concat", {c.Reshape(left, last), c.Reshape(right, last)}, {{"axis", int64_t{4}}});
    y = c.Reshape(y, {dims[0], dims[1], dims[2], Extent(2 * half)});
  } else {
    y = c.Add("Concat", {left, right}, {{"axis", int64_t{3}}});
  }
  if (2 * half == size) return y;
  return c.Add("Concat", {y, c.Slice(x, 3, Extent(2 * half), Extent(size - 2 * half))}, {{"axis", int64_t{3}}});
}

Value RotatedHeads(Call& c, Value x, int64_t heads, Value cos, Value sin) {
  const bool packed = c.rank(x) == 3, interleaved = c.Int("interleaved", 0) != 0;
  const Value y = Rotated(c, packed ? Heads(c, x, heads) : x, cos, sin, interleaved);
  return packed ? Packed(c, y) : y;
}

}  // namespace quern::onnx
