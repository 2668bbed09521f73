// Attention: softmax(q k^T scale + mask) v per head, with grouped heads; no S x S matrix is ever in memory.
//
//   layout packed: q [B, Sq, heads * head_dim], k, v [B, Sk, kv_heads * head_dim]; bshd: [B, S, heads, head_dim];
//   bhsd: [B, heads, S, head_dim]. Query head h reads kv head h / (heads / kv_heads).
//   mask none; causal: key j for query i iff j <= i + Sk - Sq; sliding(w): i' - w <= j <= i' with i' = i + Sk - Sq;
//   custom: operand mask [B, Sk], below 0.5 is masked; bias: operand added after scale and softcap, broadcast to
//   [B, heads, Sq, Sk]. softcap c > 0: s <- c tanh(s / c). A fully masked row gives zeros.
// k and v may have another float dtype than q: a half-precision cache.

#include <algorithm>
#include <cmath>

#include "ir/attention.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const AttentionShape shape(context.attributes);
  if (shape.heads < 1 || shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0 || shape.head_dim < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("Attention: %d heads do not divide into %d kv heads", shape.heads, shape.kv_heads));
  }
  const TensorType &q = context.operands[0], &k = context.operands[1], &v = context.operands[2];
  QUERN_RETURN_IF_ERROR(shape.Check(q, shape.heads, "q"));
  QUERN_RETURN_IF_ERROR(shape.Check(k, shape.kv_heads, "k"));
  if (k != v)
    return absl::InvalidArgumentError(absl::StrFormat("Attention: k is %s but v is %s", k.ToString(), v.ToString()));
  if (q.dims[0] != k.dims[0])
    return absl::InvalidArgumentError(absl::StrFormat("Attention: q is %s but k is %s", q.ToString(), k.ToString()));
  const std::string& mask = context.attributes.String("mask");
  const bool needs_operand = mask == "custom" || mask == "bias";
  if (needs_operand != (context.operands.size() == 4)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("Attention: mask %s %s a mask operand", mask, needs_operand ? "needs" : "takes no"));
  }
  const Extent &batch = q.dims[0], &sq = q.dims[shape.sequence_axis()], &sk = k.dims[shape.sequence_axis()];
  if (mask == "custom" && (context.operands[3].dims != std::vector<Extent>{batch, sk})) {
    return absl::InvalidArgumentError(
        absl::StrFormat("Attention: the mask is %s, [B, Sk] expected", context.operands[3].ToString()));
  }
  if (mask == "bias") {
    const std::vector<Extent> full = {batch, Extent(shape.heads), sq, sk};
    QUERN_ASSIGN(const std::vector<Extent> dims, BroadcastDims(context.operands[3].dims, full, context.constraints));
    if (dims != full)
      return absl::InvalidArgumentError(absl::StrFormat(
          "Attention: the bias is %s, which does not broadcast to [B, heads, Sq, Sk]", context.operands[3].ToString()));
  }
  if (mask == "sliding" && context.attributes.Int("window") < 0)
    return absl::InvalidArgumentError("Attention: the window is negative");
  return std::vector<TensorType>{q};
}

Status Reference(RefContext& context) {
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
        std::vector<double> score(sk, -INFINITY);
        double largest = -INFINITY;
        for (int64_t j = 0; j < sk; ++j) {
          const int64_t at = i + sk - sq;
          bool allowed = true;
          if (kind == "causal") allowed = j <= at;
          if (kind == "sliding") allowed = j <= at && j >= at - window;
          if (kind == "custom") allowed = mask->At(std::vector<int64_t>{b, j}) >= 0.5;
          if (!allowed) continue;
          double s = 0;
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            s += q.data[shape.Offset(b, i, h, d, sq, shape.heads)] *
                 k.data[shape.Offset(b, j, kv, d, sk, shape.kv_heads)];
          }
          s *= scale;
          if (softcap > 0) s = softcap * std::tanh(s / softcap);
          if (kind == "bias") s += mask->At(std::vector<int64_t>{b, h, i, j});
          score[j] = s;
          largest = std::max(largest, s);
        }
        double sum = 0;
        for (double& s : score) sum += s = largest == -INFINITY ? 0 : std::exp(s - largest);
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          double out = 0;
          for (int64_t j = 0; j < sk; ++j) out += score[j] * v.data[shape.Offset(b, j, kv, d, sk, shape.kv_heads)];
          context.results[0].data[shape.Offset(b, i, h, d, sq, shape.heads)] =
              RoundTo(q.dtype, sum > 0 ? out / sum : 0);
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_attention() {
  static const OpDef* const op = Make({
      .name = "Attention",
      .doc = "softmax(q k^T scale + mask) v per head, with grouped heads",
      .kind = OpKind::kRoot,
      .family = "attention",
      .operands = {{.name = "q", .kind = OperandKind::kFloat, .own_dtype = true},
                   {.name = "k", .kind = OperandKind::kFloat, .own_dtype = true},
                   {.name = "v", .kind = OperandKind::kFloat, .own_dtype = true},
                   {.name = "mask", .optional = true, .own_dtype = true}},
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
      .atol = 2e-5,
  });
  return *op;
}

}  // namespace quern::ir
