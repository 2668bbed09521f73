// AttentionBackward: the gradients of an Attention in q, k and v, and with a bias of floats in that, from one
// recomputation of the weights: p = softmax(s), ds = p (dy v^T - sum(p dy v^T)). Gradients of keys and values are
// summed over the query heads that share them. A row that sees no key has 0.
//
// The weights lie in memory, [B, kv_heads, group, Sq, Sk]. Sequences of their own lengths have none here.

#include <cmath>

#include "ir/attention.h"
#include "ir/backward.h"
#include "ir/shape.h"
#include "ir/spell_attention.h"

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

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const SpelledAttention a = SpellWeights(e, node, inputs);
  const AttentionShape& shape = a.shape;
  const int64_t kv = shape.kv_heads, d = shape.head_dim;
  const Term dy = QueryHeads(e, a, inputs.back()), &p = a.weights;
  const Term dv = p.Turned().Times(dy).Sum({2}), dp = dy.Times(a.v, /*rows=*/true);
  Term ds = p * (dp - (p * dp).Sum({4}));
  std::vector<Value> results(3);
  if (node.attributes.String("mask") == "bias") {
    std::vector<int64_t> shared;
    const std::vector<Extent> scores = {a.batch, kv, shape.heads / kv, a.sq, a.sk};
    for (int64_t axis = 0; axis < 5; ++axis) {
      if (a.bias_dims[axis] == Extent(1) && scores[axis] != Extent(1)) shared.push_back(axis);
    }
    const TensorType& type = node.results[3];
    results.push_back(e.Stored(ds.Sum(shared).Sized(type.dims).value, type.dtype));
  }
  if (node.attributes.Float("softcap") > 0) ds = ds * (1 - a.bent * a.bent);
  ds = ds * a.scale;
  const Term dq = ds.Times(a.k), dk = ds.Turned().Times(a.q).Sum({2});
  const auto give = [&](int r, const Term& x, int64_t heads) {
    const Term by_head = x.Sized({a.batch, heads, r == 0 ? a.sq : a.sk, d});
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
