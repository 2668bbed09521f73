// The attentions of com.microsoft, and its rotary embedding.

#include <cmath>

#include "onnx/attention.h"
#include "onnx/products.h"

namespace quern::onnx {
namespace {

// What a mask of whole numbers says of keys: [B, T], [B, S, T], [B, 1, S, T] of 1 and 0, or [B], how many there are.
Value MaskBias(Call& c, Value mask, const Extent& keys, double hidden) {
  Value seen;
  if (c.rank(mask) == 1) {
    const Value key = c.Add(
        "Iota", {},
        {{"shape", Extents{Extent(1), Extent(1), Extent(1), keys}}, {"axis", int64_t{3}}, {"dtype", DType::kI64}});
    const Value count = c.Reshape(c.Cast(mask, DType::kI64), {c.dim(mask, 0), Extent(1), Extent(1), Extent(1)});
    seen = c.Add("Lt", {key, count});
  } else {
    Extents dims = c.type(mask).dims;
    while (dims.size() < 4 && !dims.empty()) dims.insert(dims.begin() + 1, Extent(1));
    seen = c.Cast(c.Reshape(mask, dims), DType::kBool);
  }
  return c.Add("Where", {seen, c.Scalar(0, DType::kF32), c.Scalar(hidden, DType::kF32)});
}

// The numbers of S tokens behind `before`, [] or [B]: [1 or B, S].
Value PositionsFrom(Call& c, Value before, const Extent& tokens) {
  const Value step =
      c.Add("Iota", {}, {{"shape", Extents{Extent(1), tokens}}, {"axis", int64_t{1}}, {"dtype", DType::kI64}});
  before = c.Cast(before, DType::kI64);
  return c.Add("Add", {step, c.Reshape(before, {c.rank(before) == 0 ? Extent(1) : c.dim(before, 0), Extent(1)})});
}

}  // namespace

void AttendPacked(Call& c, Value all, int mask, int past_at, int bias) {
  const auto has = [&](int operand) { return operand >= 0 && c.Has(operand); };
  const int64_t heads = c.Int("num_heads", 1);
  if (c.Int("do_rotary", 0) != 0) return c.Fail("with rotary embeddings it has no op");
  const int64_t width = c.fixed_dim(all, 2);
  Ints sizes = c.IntList("qkv_hidden_sizes");
  if (sizes.size() != 3) sizes = {width / 3, width / 3, width / 3};
  if (sizes[0] + sizes[1] + sizes[2] != width)
    return c.Fail(absl::InvalidArgumentError("its sizes do not fit its weights"));
  const Value q = Heads(c, c.Slice(all, 2, Extent(0), Extent(sizes[0])), heads);
  Value k = Heads(c, c.Slice(all, 2, Extent(sizes[0]), Extent(sizes[1])), heads);
  Value v = Heads(c, c.Slice(all, 2, Extent(sizes[0] + sizes[1]), Extent(sizes[2])), heads);
  if (has(past_at)) {
    // Past keys and values [2, B, N, P, d].
    const Value past = c.x(past_at);
    const Extents dims = c.type(past).dims;
    if (dims.size() != 5) return c.Fail(absl::InvalidArgumentError("a past of [2, B, N, P, d] is needed"));
    const auto half = [&](int64_t i) {
      return c.Reshape(c.Slice(past, 0, Extent(i), Extent(1)), Extents(dims.begin() + 1, dims.end()));
    };
    k = Joined(c, half(0), k);
    v = Joined(c, half(1), v);
  }
  Attending how{.scale = c.Float("scale", 0)};
  if (has(mask)) how.biases.push_back(MaskBias(c, c.x(mask), c.dim(k, 2), c.Float("mask_filter_value", -10000)));
  if (has(bias)) how.biases.push_back(c.x(bias));
  if (c.Int("unidirectional", 0) != 0) {
    const Extent queries = c.dim(q, 2), keys = c.dim(k, 2);
    how.allowed.push_back(Causal(c, queries, keys, c.Size(keys - queries), 0));
  }
  c.Return(Packed(c, Attend(c, q, k, v, how)));
  if (!c.Wants(1)) return;
  const auto first = [&](Value value) {
    Extents dims = c.type(value).dims;
    dims.insert(dims.begin(), Extent(1));
    return c.Reshape(value, dims);
  };
  c.Return(1, c.Add("Concat", {first(k), first(v)}, {{"axis", int64_t{0}}}));
}

void ContribAttention(Call& c) {
  Value packed = MatMulOf(c, c.x(0), c.x(1));
  if (c.Has(2)) packed = c.Add("Add", {packed, c.x(2)});
  AttendPacked(c, packed, 3, 4, 5);
}

void MultiHeadAttention(Call& c) {
  Value q = c.x(0), k, v;
  const int64_t heads = c.Int("num_heads", 1);
  if (c.rank(q) == 5) {
    // [B, S, N, 3, d]
    const Value packed = q;
    const Extents dims = c.type(q).dims;
    const auto part = [&](int64_t i) {
      return c.Reshape(c.Slice(packed, 3, Extent(i), Extent(1)), {dims[0], dims[1], dims[2] * dims[4]});
    };
    q = part(0), k = part(1), v = part(2);
  } else if (c.Has(1) && c.rank(c.x(1)) == 5) {
    // [B, T, N, 2, d]
    const Value packed = c.x(1);
    const Extents dims = c.type(packed).dims;
    const auto part = [&](int64_t i) {
      return c.Reshape(c.Slice(packed, 3, Extent(i), Extent(1)), {dims[0], dims[1], dims[2] * dims[4]});
    };
    k = part(0), v = part(1);
  } else if (c.Has(1) && c.Has(2)) {
    k = c.x(1), v = c.x(2);
  } else {
    return c.Fail("keys and values that are neither packed nor operands have no op");
  }
  if (c.Has(3)) {
    // Of q, k and v, one behind the other.
    const Value bias = c.x(3);
    const int64_t dq = c.fixed_dim(q, 2), dv = c.rank(v) == 3 ? c.fixed_dim(v, 2) : 0;
    q = c.Add("Add", {q, c.Slice(bias, 0, Extent(0), Extent(dq))});
    if (c.rank(k) == 3) k = c.Add("Add", {k, c.Slice(bias, 0, Extent(dq), Extent(dq))});
    if (c.rank(v) == 3) v = c.Add("Add", {v, c.Slice(bias, 0, Extent(2 * dq), Extent(dv))});
  }
  q = Heads(c, q, heads);
  if (c.rank(k) == 3) k = Heads(c, k, heads);
  if (c.rank(v) == 3) v = Heads(c, v, heads);
  const Extent past = JoinPast(c, 6, k, v);
  Attending how{.scale = c.Float("scale", 0)};
  if (c.Has(4)) how.biases.push_back(MaskBias(c, c.x(4), c.dim(k, 2), c.Float("mask_filter_value", -10000)));
  if (c.Has(5)) how.biases.push_back(c.x(5));
  if (c.Int("unidirectional", 0) != 0) how.allowed.push_back(Causal(c, c.dim(q, 2), c.dim(k, 2), c.Size(past), 0));
  c.Return(Packed(c, Attend(c, q, k, v, how)));
  c.Return(1, k);
  c.Return(2, v);
}

// Keys and values behind those of the past: joined where the result has that many, else written into a buffer of a
// fixed length. All sequences of a batch have one past.
void GroupQueryAttention(Call& c) {
  Value q = c.x(0), k, v;
  const int64_t heads = c.Int("num_heads", 1), shared = c.Int("kv_num_heads", heads);
  if (c.Has(1) && c.Has(2)) {
    k = c.x(1), v = c.x(2);
  } else {
    const int64_t width = c.fixed_dim(q, 2), size = heads + 2 * shared > 0 ? width / (heads + 2 * shared) : 0;
    const Value packed = q;
    q = c.Slice(packed, 2, Extent(0), Extent(heads * size));
    k = c.Slice(packed, 2, Extent(heads * size), Extent(shared * size));
    v = c.Slice(packed, 2, Extent((heads + shared) * size), Extent(shared * size));
  }
  q = Heads(c, q, heads), k = Heads(c, k, shared), v = Heads(c, v, shared);
  if (!c.Has(5) || !c.Has(6)) return c.Fail(absl::InvalidArgumentError("lengths of the sequences are needed"));
  const Extent tokens = c.dim(q, 2);
  const Value lengths =
      c.Add("Add", {c.Cast(c.x(5), DType::kI64), c.Scalar(1, DType::kI64)});  // [B], with the new ones
  const Value flat = c.Reshape(lengths, {c.type(lengths).elements()});
  const Value before = c.Add("Sub", {flat, c.Size(tokens)});
  const bool has_past = c.Has(3) && c.Has(4);
  const std::optional<Extents> total = c.MaybeExtents(c.x(6));
  const Extent past = has_past ? c.dim(c.x(3), 2) : Extent(0);
  const bool grows = !has_past || (total && total->size() == 1 && total->at(0) == past + tokens) ||
                     (!total && past != Extent(0) && !past.is_constant());
  // What came before: where everything grows it is what there is, and of a prompt that is filled up, nothing.
  const Value place = grows ? c.Size(past) : before;
  if (c.Int("do_rotary", 0) != 0) {
    const Value positions = c.Has(9) ? c.Cast(c.x(9), DType::kI64) : PositionsFrom(c, place, tokens);
    const Value cos = TableAt(c, c.x(7), positions), sin = TableAt(c, c.x(8), positions);
    const bool interleaved = c.Int("rotary_interleaved", 0) != 0;
    q = Rotated(c, q, cos, sin, interleaved);
    k = Rotated(c, k, cos, sin, interleaved);
  }
  if (has_past && grows) {
    k = Joined(c, c.x(3), k);
    v = Joined(c, c.x(4), v);
  } else if (has_past) {
    const Value zero = c.Integers({0}), first = c.Slice(before, 0, Extent(0), Extent(1));
    const Value at = c.Add("Concat", {zero, zero, first, zero}, {{"axis", int64_t{0}}});
    k = c.Add("DynamicUpdateSlice", {c.x(3), k, at});
    v = c.Add("DynamicUpdateSlice", {c.x(4), v, at});
  }
  Attending how{.scale = c.Float("scale", 0), .softcap = c.Float("softcap", 0)};
  const int64_t window = c.Int("local_window_size", -1);
  how.allowed.push_back(Causal(c, tokens, c.dim(k, 2), place, window > 0 ? window : 0));
  if (c.Has(10)) how.biases.push_back(c.x(10));
  c.Return(Packed(c, Attend(c, q, k, v, how)));
  c.Return(1, k);
  c.Return(2, v);
}

void ContribRotary(Call& c) {
  const Value x = c.x(0), positions = c.x(1);
  const bool packed = c.rank(x) == 3;
  int64_t heads = c.Int("num_heads", 0);
  if (packed && heads == 0) {
    const int64_t half = c.fixed_dim(c.x(2), 1);
    heads = half > 0 ? c.fixed_dim(x, 2) / (2 * half) : 1;
  }
  const Extent tokens = c.dim(x, packed ? 1 : 2);
  const Value at =
      c.rank(positions) == 2 ? c.Cast(positions, DType::kI64) : PositionsFrom(c, c.Reshape(positions, {}), tokens);
  const Value cos = TableAt(c, c.x(2), at), sin = TableAt(c, c.x(3), at);
  c.Return(RotatedHeads(c, x, heads, cos, sin));
}

}  // namespace quern::onnx
