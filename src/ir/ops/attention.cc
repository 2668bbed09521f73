// Attention: softmax(q k^T scale + mask) v per head, with grouped heads; no S x S matrix is ever in memory.
//
//   layout packed: q [B, Sq, heads * head_dim], k, v [B, Sk, kv_heads * head_dim]; bshd: [B, S, heads, head_dim];
//   bhsd: [B, heads, S, head_dim]. Query head h reads kv head h / (heads / kv_heads).
//   mask none; causal: key j for query i iff j <= i + Sk - Sq; sliding(w): i' - w <= j <= i' with i' = i + Sk - Sq;
//   custom: operand mask [B, Sk], below 0.5 is masked; bias: operand added after scale and softcap, broadcast to
//   [B, heads, Sq, Sk]. softcap c > 0: s <- c tanh(s / c).
// A key that a mask or a bias of -inf hides takes no part, whatever it holds; a row without any other gives zeros. A
// NaN in anything else that a row reads makes the row NaN.
// k and v may have another float dtype than q: a half-precision cache.

#include <algorithm>
#include <cmath>

#include "ir/attention.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const AttentionShape shape(context.attributes);
  if (shape.heads < 1) return context.AttributeError("heads", "1 or more");
  if (shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0)
    return context.AttributeError("kv_heads", absl::StrFormat("a divisor of %d", shape.heads));
  if (shape.head_dim < 1) return context.AttributeError("head_dim", "1 or more");
  if (context.attributes.Int("window") < 0) return context.AttributeError("window", "0 or more");
  const TensorType &q = context.operands[0], &k = context.operands[1], &v = context.operands[2];
  if (!shape.Fits(q, shape.heads)) return context.ShapeError(0, shape.DimsText(shape.heads));
  if (!shape.Fits(k, shape.kv_heads)) return context.ShapeError(1, shape.DimsText(shape.kv_heads));
  if (!context.Equal(k.dims, v.dims)) return context.ShapeError(2, ToString(k.dims));
  if (!context.Equal(q.dims[0], k.dims[0]))
    return context.ShapeError(1, absl::StrFormat("the batch %s of q", q.dims[0].ToString()));
  if (k.dtype != v.dtype) return context.DTypeError(2, std::string(Name(k.dtype)));
  if (!AttentionShape::ComputesQueries(q.dtype)) return context.UnsupportedError(0, AttentionShape::kQueries);
  if (!AttentionShape::ComputesKeys(k.dtype)) return context.UnsupportedError(1, AttentionShape::kKeys);
  const std::string& mask = context.attributes.String("mask");
  const bool needs_operand = mask == "custom" || mask == "bias";
  if (needs_operand != (context.operands.size() == 4)) {
    return context.Error(DiagnosticCode::kInputCount, "mask", needs_operand ? "4" : "3",
                         absl::StrFormat("%u", context.operands.size()));
  }
  const Extent &batch = q.dims[0], &sq = q.dims[shape.sequence_axis()], &sk = k.dims[shape.sequence_axis()];
  if (mask == "custom" && !context.Equal(context.operands[3].dims, std::vector<Extent>{batch, sk}))
    return context.ShapeError(3, ToString({batch, sk}));
  if (mask == "bias") {
    const std::vector<Extent> full = {batch, Extent(shape.heads), sq, sk};
    if (!context.BroadcastsTo(context.operands[3].dims, full))
      return context.ShapeError(3, absl::StrCat("what broadcasts to ", ToString(full)));
  }
  return std::vector<TensorType>{q};
}

// e^s of the scores of a row, of which those with `takes_part` do, over the largest; returns their sum: 0 when there is
// nothing to see. NaN and infinities as IEEE has them.
double Weigh(std::vector<double>& score, const std::vector<bool>& takes_part) {
  double largest = -INFINITY, sum = 0;
  for (size_t j = 0; j < score.size(); ++j) {
    if (takes_part[j] && !(score[j] <= largest)) largest = score[j];
  }
  if (largest == -INFINITY) return 0;
  for (size_t j = 0; j < score.size(); ++j) sum += score[j] = takes_part[j] ? std::exp(score[j] - largest) : 0;
  return sum;
}

// The results, or their magnitude: sums over |v|.
Status Evaluate(RefContext& context, bool magnitude) {
  const AttentionShape shape(context.node.attributes);
  const RefTensor &q = *context.operands[0], &k = *context.operands[1], &v = *context.operands[2];
  const RefTensor* mask = context.operands.size() > 3 ? context.operands[3] : nullptr;
  const std::string& kind = context.node.attributes.String("mask");
  const int64_t window = context.node.attributes.Int("window");
  const double softcap = context.node.attributes.Float("softcap");
  double scale = context.node.attributes.Float("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  const int64_t sq = q.dims[shape.sequence_axis()], sk = k.dims[shape.sequence_axis()];
  for (int64_t b = 0; b < q.dims[0]; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t kv = h / (shape.heads / shape.kv_heads);
      for (int64_t i = 0; i < sq; ++i) {
        std::vector<double> score(sk);
        std::vector<bool> takes_part(sk, true);  // a key that the mask or a bias of -inf hides does not
        for (int64_t j = 0; j < sk; ++j) {
          const int64_t at = i + sk - sq;
          if (kind == "causal") takes_part[j] = j <= at;
          if (kind == "sliding") takes_part[j] = j <= at && j >= at - window;
          if (kind == "custom") takes_part[j] = mask->At(std::vector<int64_t>{b, j}) >= 0.5;
          const double bias = kind == "bias" ? mask->At(std::vector<int64_t>{b, h, i, j}) : 0;
          takes_part[j] = takes_part[j] && bias != -INFINITY;
          double s = 0;
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            s += q.data[shape.Offset(b, i, h, d, sq, shape.heads)] *
                 k.data[shape.Offset(b, j, kv, d, sk, shape.kv_heads)];
          }
          s *= scale;
          if (softcap > 0) s = softcap * std::tanh(s / softcap);
          score[j] = s + bias;
        }
        const double sum = Weigh(score, takes_part);
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          double out = 0;
          for (int64_t j = 0; j < sk && sum != 0; ++j) {
            const double value = v.data[shape.Offset(b, j, kv, d, sk, shape.kv_heads)];
            if (takes_part[j]) out += score[j] / sum * (magnitude ? std::fabs(value) : value);
          }
          context.results[0].data[shape.Offset(b, i, h, d, sq, shape.heads)] = RoundTo(q.dtype, out);
        }
      }
    }
  }
  return absl::OkStatus();
}

Status Reference(RefContext& context) { return Evaluate(context, /*magnitude=*/false); }
Status Magnitude(RefContext& context) { return Evaluate(context, /*magnitude=*/true); }

}  // namespace

const OpDef& Op_attention() {
  static const OpDef* const op = Make({
      .name = "Attention",
      .doc = "softmax(q k^T scale + mask) v per head, with grouped heads",
      .kind = OpKind::kRoot,
      .family = "attention",
      .operands = {{.name = "q",
                    .kind = OperandKind::kFloat,
                    .shape = "[B, Sq, heads * head_dim], or by layout",
                    .own_dtype = true},
                   {.name = "k",
                    .kind = OperandKind::kFloat,
                    .shape = "[B, Sk, kv_heads * head_dim], or by layout",
                    .own_dtype = true},
                   {.name = "v", .kind = OperandKind::kFloat, .shape = "as k", .own_dtype = true},
                   {.name = "mask",
                    .shape = "custom: [B, Sk]; bias: broadcasts to [B, heads, Sq, Sk]",
                    .optional = true,
                    .own_dtype = true}},
      .attributes = {{.name = "heads", .kind = AttrKind::kInt},
                     {.name = "kv_heads", .kind = AttrKind::kInt},
                     {.name = "head_dim", .kind = AttrKind::kInt},
                     {.name = "mask",
                      .kind = AttrKind::kString,
                      .default_value = std::string("none"),
                      .choices = {"none", "causal", "sliding", "custom", "bias"}},
                     {.name = "window",
                      .kind = AttrKind::kInt,
                      .default_value = int64_t{0},
                      .doc = "sliding: keys before the query's own"},
                     {.name = "scale", .kind = AttrKind::kFloat, .default_value = 0.0, .doc = "0: 1 / sqrt(head_dim)"},
                     {.name = "softcap", .kind = AttrKind::kFloat, .default_value = 0.0, .doc = "0: none"},
                     {.name = "layout",
                      .kind = AttrKind::kString,
                      .default_value = std::string("packed"),
                      .choices = {"packed", "bshd", "bhsd"}}},
      .infer = Infer,
      .reference = Reference,
      .rtol = 2e-5,
      .magnitude = Magnitude,
  });
  return *op;
}

}  // namespace quern::ir
