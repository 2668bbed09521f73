// Mamba2: a state for each head that every token decays by one number and adds to (Dao and Gu, arXiv:2405.21060). `dt`
// is used as given (softplus is the caller's); the state is f32 whatever the operands are.
//
//   x [B, S, H, P]   dt [B, S, H]   a [H]   b, c [B, S, G, N]   d [H]   state [B, H, P, N]
//   h <- e^(dt a) h + dt x b^T    y = h c + d x    head i reads group i / (H / G)
//
// Token by token it is a SelectiveScan of each group. With `chunk` C it is products: with l the running sum of dt a in
// a chunk and h the state before it,
//   y_t = e^(l_t) h c_t + sum_{s<=t} e^(l_t - l_s) (c_t b_s) dt_s x_s
//   h <- e^(l_C) h + sum_s e^(l_C - l_s) dt_s x_s b_s^T
// A last chunk that is not full is filled up with tokens of which dt, x and b are 0: they leave the state as it is.

#include <cmath>

#include "ir/chunks.h"
#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

using Dims = std::vector<Extent>;

enum : int { kX, kDt, kA, kB, kC, kD, kState };

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const std::span<const TensorType> operands = context.operands;
  const TensorType &x = operands[kX], &b = operands[kB];
  if (context.attributes.Int("chunk") < 0) return context.AttributeError("chunk", "0 or more");
  for (int i = 0; i < static_cast<int>(operands.size()); ++i) {
    if (operands[i].dtype == DType::kF64) return context.UnsupportedError(i, "f32, f16 or bf16: the state is f32");
  }
  const auto known = [](const Extent& extent) { return extent.is_constant() && extent.constant() >= 1; };
  if (x.rank() != 4 || !known(x.dims[2]) || !known(x.dims[3]))
    return context.ShapeError(kX, "[B, S, H, P], H and P constants of 1 or more");
  const Extent &batch = x.dims[0], &length = x.dims[1], &heads = x.dims[2], &p = x.dims[3];
  if (!context.Equal(operands[kDt].dims, Dims{batch, length, heads}))
    return context.ShapeError(kDt, ToString({batch, length, heads}));
  if (!context.Equal(operands[kA].dims, Dims{heads})) return context.ShapeError(kA, ToString({heads}));
  if (b.rank() != 4 || !known(b.dims[2]) || !known(b.dims[3]) || heads.constant() % b.dims[2].constant() != 0)
    return context.ShapeError(kB, absl::StrFormat("[%s, %s, G, N], G a divisor of %s", batch.ToString(),
                                                  length.ToString(), heads.ToString()));
  const Dims each = {batch, length, b.dims[2], b.dims[3]}, state = {batch, heads, p, b.dims[3]};
  for (const int i : {kB, kC}) {
    if (!context.Equal(operands[i].dims, each)) return context.ShapeError(i, ToString(each));
  }
  const int count = static_cast<int>(operands.size());
  if (count > kD && !context.Equal(operands[kD].dims, Dims{heads})) return context.ShapeError(kD, ToString({heads}));
  if (count > kState) {
    if (operands[kState].dtype != DType::kF32) return context.DTypeError(kState, "f32");
    if (!context.Equal(operands[kState].dims, state)) return context.ShapeError(kState, ToString(state));
  }
  return std::vector<TensorType>{x, {DType::kF32, state}};
}

// The two forms, over f32 operands with d and a state.
class Form {
 public:
  Form(Expansion& e, std::span<const Value> operands) : e_(e), operands_(operands) {
    const Dims &x = e.type(operands[kX]).dims, &b = e.type(operands[kB]).dims;
    batch_ = x[0], length_ = x[1], p_ = x[3], groups_ = b[2].constant(), n_ = b[3];
    each_ = x[2].constant() / groups_;
  }

  std::vector<Value> TokenByToken() {
    const Extent channels = p_ * Extent(each_), all = p_ * Extent(each_ * groups_);
    // A number of each head, for each of its channels.
    const auto by_channel = [&](Value x, Dims before) {
      Dims apart = before, wide = before;
      before.push_back(all);
      apart.insert(apart.end(), {Extent(each_ * groups_), Extent(1)});
      wide.insert(wide.end(), {Extent(each_ * groups_), p_});
      return e_.Sized(Add("Expand", {e_.Sized(x, apart)}, {{"shape", wide}}), before);
    };
    const Value x = e_.Sized(operands_[kX], {batch_, length_, all}), dt = by_channel(operands_[kDt], {batch_, length_});
    const Value a = by_channel(operands_[kA], {}), d = by_channel(operands_[kD], {});
    const Value state = e_.Sized(operands_[kState], {batch_, all, n_});
    std::vector<Value> y, states;
    for (int64_t g = 0; g < groups_; ++g) {
      const auto part = [&](Value from, int64_t axis, const Extent& size) {
        if (groups_ == 1) return from;
        return Add("Narrow", {from}, {{"axis", axis}, {"start", Dims{size * Extent(g)}}, {"length", Dims{size}}});
      };
      const auto of_group = [&](int operand) {
        return e_.Sized(part(operands_[operand], 2, Extent(1)), {batch_, length_, n_});
      };
      const Value decay = e_.Sized(part(a, 0, channels), {channels, Extent(1)});
      const Value made = Add("SelectiveSteps", {part(x, 2, channels), part(dt, 2, channels), decay, of_group(kB),
                                                of_group(kC), part(d, 0, channels), part(state, 1, channels)});
      y.push_back(made), states.push_back({made.node, 1});
    }
    const auto joined = [&](const std::vector<Value>& parts, int64_t axis) {
      return groups_ == 1 ? parts[0] : Add("Concat", parts, {{"axis", axis}});
    };
    const Extent heads(each_ * groups_);
    return {e_.Sized(joined(y, 2), {batch_, length_, heads, p_}), e_.Sized(joined(states, 1), {batch_, heads, p_, n_})};
  }

  std::vector<Value> InChunks(int64_t size) {
    const Chunks chunks(e_, batch_, length_, size);
    const Extent groups(groups_), each(each_), heads(each_ * groups_), &c = chunks.size();
    const auto with = [&](Value x, Dims last) {
      Dims dims = {chunks.count(), batch_, groups, each};
      dims.insert(dims.end(), last.begin(), last.end());
      return e_.Sized(x, dims);
    };
    const Attributes transposed = {{"transpose_b", true}};
    const auto shared = [&](Value x, const Extent& columns) {
      return e_.Sized(x, {chunks.count(), batch_, groups, Extent(1), c, columns});
    };
    const Value dt = chunks.Split(operands_[kDt], {groups, each}, 2),
                x = chunks.Split(operands_[kX], {groups, each, p_}, 2);
    const Value in = shared(chunks.Split(operands_[kB], {groups, n_}, 1), n_),
                out = shared(chunks.Split(operands_[kC], {groups, n_}, 1), n_);
    const Value steps = Add("Mul", {dt, e_.Sized(operands_[kA], {groups, each, Extent(1)})});
    const Value sum = Add("CumSum", {steps}, {{"axis", int64_t{-1}}});
    const Value rows = with(sum, {c, Extent(1)}), columns = with(sum, {Extent(1), c});
    const Value decay =
        Add("Trilu", {Add("Exp", {Add("Sub", {rows, columns})})}, {{"upper", false}, {"k", int64_t{0}}});
    const Value given = Add("Mul", {x, with(dt, {c, Extent(1)})});
    const Value inside = Add("MatMul", {Add("Mul", {decay, Add("MatMul", {out, in}, transposed)}), given});
    const Value total =
        Add("Narrow", {rows}, {{"axis", int64_t{-2}}, {"start", Dims{c - Extent(1)}}, {"length", Dims{Extent(1)}}});
    const Value left = Add("Mul", {given, Add("Exp", {Add("Sub", {total, rows})})});
    const Value turned = Add("Transpose", {left}, {{"perm", std::vector<int64_t>{0, 1, 2, 3, 5, 4}}});
    const Value start = e_.Sized(operands_[kState], {batch_, groups, each, p_, n_});
    const std::vector<Value> states =
        e_.Scan(chunks.count(), {start},
                {Add("MatMul", {turned, in}), Add("Exp", {total}), Add("Mul", {out, Add("Exp", {rows})})},
                [&](Expansion& b, std::span<const Value> now) -> std::vector<Value> {
                  enum { kH, kAdded, kDecay, kOut };
                  const Value before = b.Add("MatMul", {now[kOut], now[kH]}, transposed);
                  return {b.Add("Add", {b.Add("Mul", {now[kH], now[kDecay]}), now[kAdded]}), before};
                });
    const Value y = chunks.Joined(Add("Add", {inside, states[1]}));
    const Value skipped = Add("Mul", {operands_[kX], e_.Sized(operands_[kD], {heads, Extent(1)})});
    return {Add("Add", {y, skipped}), e_.Sized(states[0], {batch_, heads, p_, n_})};
  }

 private:
  Value Add(std::string_view op, std::vector<Value> inputs, Attributes attributes = {}) {
    return e_.Add(op, std::move(inputs), std::move(attributes));
  }

  Expansion& e_;
  const std::span<const Value> operands_;
  Extent batch_, length_, p_, n_;
  int64_t groups_ = 1, each_ = 1;  // heads of a group
};

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  std::vector<Value> operands;
  for (const Value& input : inputs) operands.push_back(e.Wide(input));
  const Value zero = e.Scalar(0, DType::kF32);
  const auto zeros = [&](const Dims& dims) { return e.Add("Expand", {zero}, {{"shape", dims}}); };
  if (operands.size() == kD) operands.push_back(zeros({node.results[1].dims[1]}));
  if (operands.size() == kState) operands.push_back(zeros(node.results[1].dims));
  if (!e.ok()) return e.Finish({});
  Form form(e, operands);
  const int64_t chunk = node.attributes.Int("chunk");
  const std::vector<Value> made = chunk == 0 ? form.TokenByToken() : form.InChunks(chunk);
  return e.Finish({e.Stored(made[0], node.results[0].dtype), made[1]});
}

// The recurrence, token by token; for magnitudes with every term positive.
Status Run(RefContext& context, double (*term)(double)) {
  const auto operand = [&](size_t i) { return i < context.operands.size() ? context.operands[i] : nullptr; };
  const RefTensor &x = *operand(kX), &dt = *operand(kDt), &a = *operand(kA), &b = *operand(kB), &c = *operand(kC);
  const RefTensor *const d = operand(kD), *const carried = operand(kState);
  RefTensor &y = context.results[0], &states = context.results[1];
  const int64_t batch = x.dims[0], length = x.dims[1], heads = x.dims[2], p = x.dims[3], groups = b.dims[2],
                n = b.dims[3];
  for (int64_t at = 0; at < batch * heads * p; ++at) {
    const int64_t s = at / (heads * p), h = at / p % heads, i = at % p;
    std::vector<double> state(n);
    for (int64_t j = 0; carried != nullptr && j < n; ++j) state[j] = term(carried->data[at * n + j]);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t token = s * length + t, group = (token * groups + h / (heads / groups)) * n;
      const double step = dt.data[token * heads + h], now = x.data[(token * heads + h) * p + i];
      double out = d == nullptr ? 0 : term(d->data[h] * now);
      for (int64_t j = 0; j < n; ++j) {
        state[j] = std::exp(step * a.data[h]) * state[j] + term(step * now * b.data[group + j]);
        out += term(state[j] * c.data[group + j]);
      }
      y.data[(token * heads + h) * p + i] = RoundTo(y.dtype, out);
    }
    for (int64_t j = 0; j < n; ++j) states.data[at * n + j] = state[j];
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_mamba2() {
  static const OpDef* const op = Make({
      .name = "Mamba2",
      .doc = "a state for each head that every token decays by one number and adds to: y and the state",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[B, S, H, P]"},
                   {.name = "dt", .kind = OperandKind::kFloat, .shape = "[B, S, H]", .own_dtype = true},
                   {.name = "a", .kind = OperandKind::kFloat, .shape = "[H]", .own_dtype = true},
                   {.name = "b", .kind = OperandKind::kFloat, .shape = "[B, S, G, N], G a divisor of H"},
                   {.name = "c", .kind = OperandKind::kFloat, .shape = "as b"},
                   {.name = "d", .kind = OperandKind::kFloat, .shape = "[H]", .optional = true, .own_dtype = true},
                   {.name = "state",
                    .kind = OperandKind::kFloat,
                    .shape = "f32 [B, H, P, N]; absent: zeros",
                    .optional = true,
                    .own_dtype = true}},
      .attributes = {{.name = "chunk",
                      .kind = AttrKind::kInt,
                      .default_value = int64_t{0},
                      .doc = "how many tokens products are made of; 0: token by token"}},
      .infer = Infer,
      .reference = [](RefContext& c) { return Run(c, [](double term) { return term; }); },
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = [](RefContext& c) { return Run(c, [](double term) { return std::fabs(term); }); },
      .sample_high = 1,
      .examples = {{{"f32[2, 3, 4, 5]", "f32[2, 3, 4]", "f32[4]", "f32[2, 3, 2, 7]", "f32[2, 3, 2, 7]"}},
                   {{"f16[S, 2, 3, 5]", "f32[S, 2, 3]", "f32[3]", "f16[S, 2, 1, 16]", "f16[S, 2, 1, 16]", "f32[3]",
                     "f32[S, 3, 5, 16]"}},
                   {{"f32[2, S, 2, 3]", "f32[2, S, 2]", "f32[2]", "f32[2, S, 1, 5]", "f32[2, S, 1, 5]", "f32[2]",
                     "f32[2, 2, 3, 5]"},
                    {{"chunk", int64_t{2}}}}},
  });
  return *op;
}

}  // namespace quern::ir
