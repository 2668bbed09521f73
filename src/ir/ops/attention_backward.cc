// AttentionBackward: the gradients of an Attention in q, k and v, and with a bias of floats in that, from one
// recomputation of the weights: p = softmax(s), ds = p (dy v^T - sum(p dy v^T)). Gradients of keys and values are
// summed over the query heads that share them. A row that sees no key has 0.
//
// The weights lie in memory, [B, kv_heads, group, Sq, Sk]. Sequences of their own lengths have none here.

#include <cmath>

#include "ir/attention.h"
#include "ir/backward.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

bool HasMask(const Attributes& attributes) {
  return attributes.String("mask") == "custom" || attributes.String("mask") == "bias";
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const bool mask = HasMask(context.attributes), bias = context.attributes.String("mask") == "bias";
  const size_t count = mask ? 5 : 4;
  if (context.operands.size() != count)
    return context.Error(DiagnosticCode::kInputCount, "mask", absl::StrFormat("%u operands", count),
                         absl::StrFormat("%u", context.operands.size()));
  const OpDef& attention = *FindOp("Attention");
  Attributes attributes = context.attributes;
  QUERN_RETURN_IF_ERROR(CheckAttributes(attention.name, attention.attributes, attributes, /*fill_defaults=*/true));
  const InferContext forward{context.op, context.operands.first(count - 1), attributes, context.symbols,
                             context.constraints};
  QUERN_RETURN_IF_ERROR(attention.infer(forward).status());
  const TensorType &q = context.operands[0], &k = context.operands[1], &v = context.operands[2];
  if (!context.Equal(context.operands.back().dims, q.dims))
    return context.Error(DiagnosticCode::kShapeMismatch, "dy", ToString(q.dims), context.operands.back().ToString());
  if (bias && context.operands[3].dtype == DType::kBool) return context.DTypeError(3, "floats");
  std::vector<TensorType> results = {q, k, v};
  if (bias) results.push_back(context.operands[3]);
  return results;
}

// A tensor of `heads` heads as [B, heads, S, head_dim], and back.
Term ByHead(const Term& x, const AttentionShape& shape, int64_t heads) {
  if (!x.e->ok()) return x;
  const std::vector<Extent> dims = x.e->type(x.value).dims;
  if (shape.layout == AttentionShape::Layout::kBhsd) return x;
  return x.Sized({dims[0], dims[1], Extent(heads), Extent(shape.head_dim)}).Transposed({0, 2, 1, 3});
}
Term FromHeads(const Term& x, const AttentionShape& shape, const std::vector<Extent>& dims) {
  if (shape.layout == AttentionShape::Layout::kBhsd) return x.Sized(dims);
  return x.Transposed({0, 2, 1, 3}).Sized(dims);
}

// Whether query i may see key j, of [Sq, Sk]; with a custom mask of [B, 1, 1, 1, Sk]. Nothing hides any: none.
std::optional<Term> Seen(Expansion& e, const Node& node, std::span<const Value> inputs, const Extent& sq,
                         const Extent& sk) {
  const std::string& mask = node.attributes.String("mask");
  if (mask == "custom") {
    const Term given = Term::Wide(e, inputs[3]);
    const Extent batch = e.type(inputs[0]).dims[0];
    return given.Like(0.5).Join("Le", given).Sized({batch, 1, 1, 1, sk});
  }
  if (mask != "causal" && mask != "sliding") return std::nullopt;
  const auto count = [&](const Extent& n, std::vector<Extent> dims, int64_t axis) {
    dims[axis] = n;
    return Term(e, e.Add("Iota", {}, {{"shape", std::move(dims)}, {"axis", axis}, {"dtype", DType::kI64}}));
  };
  const Term j = count(sk, {1, 1}, 1);
  const Term shift(e, e.Add("Sub", {e.Add("Size", {}, {{"extent", std::vector<Extent>{sk}}}),
                                    e.Add("Size", {}, {{"extent", std::vector<Extent>{sq}}})}));
  const Term at = count(sq, {1, 1}, 0) + shift;
  const Term before = j.Join("Le", at);
  if (mask == "causal") return before;
  const Term least = at - Term(e, IntegerOf(e, node.attributes.Int("window")));
  return before.Join("BitAnd", least.Join("Le", j));
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const AttentionShape shape(node.attributes);
  const int64_t kv = shape.kv_heads, group = shape.heads / kv, d = shape.head_dim;
  const std::vector<Extent> q_dims = graph.type(inputs[0]).dims, k_dims = graph.type(inputs[1]).dims;
  const Extent &batch = q_dims[0], &sq = q_dims[shape.sequence_axis()], &sk = k_dims[shape.sequence_axis()];
  double scale = node.attributes.Float("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(d));
  const double softcap = node.attributes.Float("softcap");
  const std::vector<Extent> rows = {batch, kv, group, sq, d}, keys = {batch, kv, 1, sk, d};
  const Term q = ByHead(Term::Wide(e, inputs[0]), shape, shape.heads).Sized(rows),
             k = ByHead(Term::Wide(e, inputs[1]), shape, kv).Sized(keys),
             v = ByHead(Term::Wide(e, inputs[2]), shape, kv).Sized(keys),
             dy = ByHead(Term::Wide(e, inputs.back()), shape, shape.heads).Sized(rows);
  Term s = q.Times(k, /*rows=*/true) * scale;
  const Term bent = softcap > 0 ? (s / softcap).Call("Tanh") : s;
  if (softcap > 0) s = bent * softcap;
  const bool bias = node.attributes.String("mask") == "bias";
  std::vector<Extent> bias_dims;
  if (bias) {
    // [B, heads, Sq, Sk], or what broadcasts to it, with the heads apart.
    bias_dims = graph.type(inputs[3]).dims;
    std::vector<Extent> full(4 - bias_dims.size(), Extent(1));
    full.insert(full.end(), bias_dims.begin(), bias_dims.end());
    const bool by_head = full[1] == Extent(shape.heads) && shape.heads != 1;
    bias_dims = {full[0], by_head ? Extent(kv) : Extent(1), by_head ? Extent(group) : Extent(1), full[2], full[3]};
    s = s + Term::Wide(e, inputs[3]).Sized(bias_dims);
  }
  if (const std::optional<Term> seen = Seen(e, node, inputs, sq, sk)) s = Term::Choose(*seen, s, s.Like(-INFINITY));
  const Term largest(e, e.Reduced("max", s.value, {4}));
  const Term base = Term::Choose(largest.Join("Eq", largest.Like(-INFINITY)), largest.Like(0), largest);
  const Term weight = (s - base).Call("Exp"), sum = weight.Sum({4});
  const Term p = weight / Term::Choose(sum.Join("Eq", sum.Like(0)), sum.Like(1), sum);
  const Term dv = p.Turned().Times(dy).Sum({2}), dp = dy.Times(v, /*rows=*/true);
  Term ds = p * (dp - (p * dp).Sum({4}));
  std::vector<Value> results(3);
  if (bias) {
    std::vector<int64_t> shared;
    const std::vector<Extent> scores = {batch, kv, group, sq, sk};
    for (int64_t a = 0; a < 5; ++a) {
      if (bias_dims[a] == Extent(1) && scores[a] != Extent(1)) shared.push_back(a);
    }
    const TensorType& type = node.results[3];
    results.push_back(e.Stored(ds.Sum(shared).Sized(type.dims).value, type.dtype));
  }
  if (softcap > 0) ds = ds * (1 - bent * bent);
  ds = ds * scale;
  const Term dq = ds.Times(k), dk = ds.Turned().Times(q).Sum({2});
  const auto give = [&](int r, const Term& x, int64_t heads) {
    const Term by_head = x.Sized({batch, heads, r == 0 ? sq : sk, d});
    results[r] = e.Stored(FromHeads(by_head, shape, node.results[r].dims).value, node.results[r].dtype);
  };
  give(0, dq, shape.heads);
  give(1, dk, kv);
  give(2, dv, kv);
  return e.Finish(std::move(results));
}

// In plain loops. With `sizes` terms count by their size.
Status Evaluate(RefContext& context, bool sizes) {
  const Attributes& attributes = context.node.attributes;
  const AttentionShape shape(attributes);
  const RefTensor &q = *context.operands[0], &k = *context.operands[1], &v = *context.operands[2],
                  &dy = *context.operands.back();
  const std::string& kind = attributes.String("mask");
  const RefTensor* const mask = HasMask(attributes) ? context.operands[3] : nullptr;
  const double softcap = attributes.Float("softcap");
  double scale = attributes.Float("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  const int64_t sq = q.dims[shape.sequence_axis()], sk = k.dims[shape.sequence_axis()];
  const auto of = [&](double value) { return sizes ? std::fabs(value) : value; };
  if (mask == nullptr && kind == "bias") return absl::InternalError("a bias without an operand");
  for (int64_t b = 0; b < q.dims[0]; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t shared = h / (shape.heads / shape.kv_heads);
      for (int64_t i = 0; i < sq; ++i) {
        const auto at = [&](int64_t d) { return shape.Offset(b, i, h, d, sq, shape.heads); };
        const auto key = [&](int64_t j, int64_t d) { return shape.Offset(b, j, shared, d, sk, shape.kv_heads); };
        std::vector<double> p(sk, 0), slope(sk, 1), dp(sk, 0);
        double sum = 0, mean = 0, largest = -INFINITY;
        const int64_t position = i + sk - sq;
        for (int64_t j = 0; j < sk; ++j) {
          double s = 0;
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            s += q.data[at(d)] * k.data[key(j, d)] * scale;
            dp[j] += of(dy.data[at(d)] * v.data[key(j, d)]);
          }
          if (softcap > 0) slope[j] = 1 - std::tanh(s / softcap) * std::tanh(s / softcap);
          if (softcap > 0) s = softcap * std::tanh(s / softcap);
          if (kind == "bias") s += mask->At(std::vector<int64_t>{b, h, i, j});
          const bool hidden = (kind == "causal" && j > position) ||
                              (kind == "sliding" && (j > position || j < position - attributes.Int("window"))) ||
                              (kind == "custom" && !(mask->At(std::vector<int64_t>{b, j}) >= 0.5));
          p[j] = hidden ? -INFINITY : s;
          largest = std::max(largest, p[j]);
        }
        for (int64_t j = 0; j < sk; ++j) sum += p[j] = largest == -INFINITY ? 0 : std::exp(p[j] - largest);
        for (int64_t j = 0; j < sk && sum != 0; ++j) mean += (p[j] /= sum) * dp[j];
        for (int64_t j = 0; j < sk; ++j) {
          const double ds = sizes ? 4 * p[j] * (dp[j] + mean) : p[j] * (dp[j] - mean);
          if (kind == "bias") context.results[3].data[mask->Offset(std::vector<int64_t>{b, h, i, j})] += ds;
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            context.results[0].data[at(d)] += of(ds * slope[j] * scale * k.data[key(j, d)]);
            context.results[1].data[key(j, d)] += of(ds * slope[j] * scale * q.data[at(d)]);
            context.results[2].data[key(j, d)] += of(p[j] * dy.data[at(d)]);
          }
        }
      }
    }
  }
  for (RefTensor& result : context.results) {
    for (double& value : result.data) value = sizes ? value : RoundTo(result.dtype, value);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_attention();

const OpDef& Op_attention_backward() {
  static const OpDef* const op = [] {
    std::vector<AttrDef> attributes;
    for (const AttrDef& attribute : Op_attention().attributes) {
      const std::string_view name = attribute.name;
      if (name != "sequences" && name != "empty_rows") attributes.push_back(attribute);
    }
    const Attributes heads = {{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}, {"head_dim", int64_t{4}}};
    const auto with = [&](const char* name, AttrValue value) {
      Attributes more = heads;
      more.Set(name, std::move(value));
      return more;
    };
    return Make({
        .name = "AttentionBackward",
        .doc = "the gradients of an Attention in q, k, v, and in its bias",
        .kind = OpKind::kComposite,
        .operands = {{.name = "q", .kind = OperandKind::kFloat, .shape = "as of Attention"},
                     {.name = "k", .kind = OperandKind::kFloat, .shape = "as of Attention"},
                     {.name = "v", .kind = OperandKind::kFloat, .shape = "as of Attention"},
                     {.name = "mask", .kind = OperandKind::kFloat, .shape = "custom and bias; others have dy here"},
                     {.name = "dy", .kind = OperandKind::kFloat, .shape = "as q", .optional = true}},
        .attributes = std::move(attributes),
        .infer = Infer,
        .reference = [](RefContext& c) { return Evaluate(c, false); },
        .expand = Expand,
        .rtol = 2e-5,
        .magnitude = [](RefContext& c) { return Evaluate(c, true); },
        .examples = {{{"f32[2, 3, 16]", "f32[2, 5, 8]", "f32[2, 5, 8]", "f32[2, 3, 16]"}, heads},
                     {{"f32[1, S, 16]", "f32[1, S, 8]", "f32[1, S, 8]", "f32[1, S, 16]"},
                      with("mask", std::string("causal"))},
                     {{"f32[2, 3, 16]", "f32[2, 5, 8]", "f32[2, 5, 8]", "f32[4, 3, 5]", "f32[2, 3, 16]"},
                      with("mask", std::string("bias"))},
                     {{"f32[2, 3, 16]", "f32[2, 5, 8]", "f32[2, 5, 8]", "f32[2, 5]", "f32[2, 3, 16]"},
                      with("mask", std::string("custom"))}},
    });
  }();
  return *op;
}

}  // namespace quern::ir
