// Qwen35MtpHead: the head that drafts the token after the next from the hidden states of a model and the tokens behind
// them, in the steps of its definition:
//
//   cur = concat(RMS(embed[ids]; enorm), RMS(h; hnorm)) eh_w            the embedding comes first
//   z = RMS(cur; attn_norm) q_gate_w, by head: head_dim of q, then head_dim of the gate
//   q, k = RoPE(RMS by head)   a = Attention(q, k, v) sigmoid(gate)     causal, grouped
//   cur2 = cur + a o_w   m = RMS(cur2; post_norm)   cur3 = cur2 + (silu(m gate_w) (m up_w)) down_w
//   y[b, 0] = RMS(cur3[b, last_idx[b]]; head_norm) lm_head              an index is clamped; a negative one is from the
//   end
//
// Gammas are as given; a beta that is absent or zeros costs nothing. Weights are [K, N], or rows [N, K] with
// weight_layout "nk"; sizes of the model, of its feed-forward part and of its vocabulary follow from them.

#include "hir/linear.h"

namespace quern::hir {
namespace {

// clang-format off
enum Operand {
  kH, kIds, kCos, kSin, kLast, kEmbed, kHNorm, kHNormBeta, kENorm, kENormBeta, kEhW, kAttnNorm, kAttnNormBeta, kQGate,
  kK, kV, kQNorm, kQNormBeta, kKNorm, kKNormBeta, kO, kPostNorm, kPostNormBeta, kGate, kUp, kDown, kHeadNorm,
  kHeadNormBeta, kLmHead,
};
// clang-format on

struct Sizes {
  explicit Sizes(const Attributes& attributes)
      : heads(attributes.Int("heads")),
        kv_heads(attributes.Int("kv_heads") == 0 ? heads : attributes.Int("kv_heads")),
        head_dim(attributes.Int("head_dim")),
        n_rot(attributes.Int("n_rot") == 0 ? head_dim : attributes.Int("n_rot")) {}
  int64_t heads, kv_heads, head_dim, n_rot;
};

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const Sizes s(c.attributes);
  if (s.heads < 1) return c.AttributeError("heads", "1 or more");
  if (s.kv_heads < 1 || s.heads % s.kv_heads != 0)
    return c.AttributeError("kv_heads", absl::StrFormat("a divisor of %d", s.heads));
  if (s.head_dim < 2) return c.AttributeError("head_dim", "2 or more");
  if (s.n_rot < 2 || s.n_rot % 2 != 0 || s.n_rot > s.head_dim)
    return c.AttributeError("n_rot", absl::StrFormat("even and at most %d", s.head_dim));
  if (c.attributes.Float("eps") < 0) return c.AttributeError("eps", "0 or more");
  const TensorType &h = c.operand(kH), &embed = c.operand(kEmbed), &last = c.operand(kLast);
  if (h.rank() != 3) return c.ShapeError(kH, "[B, S, E]");
  QUERN_RETURN_IF_ERROR(c.ExpectDType(kH, DType::kF32));
  const Extent &batch = h.dims[0], &length = h.dims[1], &width = h.dims[2];
  QUERN_RETURN_IF_ERROR(c.ExpectDims(kIds, {batch, length}));
  if (last.rank() != 1 && last.rank() != 2) return c.ShapeError(kLast, "[B] or [B, 1]");
  QUERN_RETURN_IF_ERROR(
      c.ExpectDims(kLast, last.rank() == 1 ? std::vector<Extent>{batch} : std::vector<Extent>{batch, Extent(1)}));
  if (embed.rank() != 2) return c.ShapeError(kEmbed, "[V, E]");
  QUERN_RETURN_IF_ERROR(c.ExpectDims(kEmbed, {embed.dims[0], width}));
  if (!IsBlock(embed.dtype)) QUERN_RETURN_IF_ERROR(c.ExpectDType(kEmbed, h.dtype));
  for (const Operand norm : {kHNorm, kENorm, kAttnNorm, kQNorm, kKNorm, kPostNorm, kHeadNorm}) {
    const Extent size = norm == kQNorm || norm == kKNorm ? Extent(s.head_dim) : width;
    for (const int operand : {static_cast<int>(norm), norm + 1}) {
      QUERN_RETURN_IF_ERROR(c.ExpectDims(operand, {size}));
      QUERN_RETURN_IF_ERROR(c.ExpectDType(operand, DType::kF32));
    }
  }
  std::optional<Extent> same(width), query(s.heads * 2 * s.head_dim), key(s.kv_heads * s.head_dim), hidden, vocabulary;
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kEhW, h.dtype, width + width, same));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kQGate, h.dtype, width, query));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kK, h.dtype, width, key));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kV, h.dtype, width, key));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kO, h.dtype, Extent(s.heads * s.head_dim), same));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kGate, h.dtype, width, hidden));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kUp, h.dtype, width, hidden));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kDown, h.dtype, *hidden, same));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kLmHead, h.dtype, width, vocabulary));
  return std::vector<TensorType>{{h.dtype, {batch, Extent(1), *vocabulary}}};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  const Sizes s(c.attributes());
  const std::vector<Extent> dims = c.type(c.inputs[kH]).dims;
  const Extent &batch = dims[0], &length = dims[1];
  const Extent heads(s.heads), size(s.head_dim);
  const Attributes eps = {{"eps", c.attributes().Float("eps")}};
  const auto norm = [&](ir::Value x, Operand gamma, const char* label) {
    return c.Block("RmsNorm", {x, c.inputs[gamma], c.inputs[gamma + 1]}, eps, label)[0];
  };
  const auto linear = [&](ir::Value x, Operand weight, const char* label) {
    return c.Block("Linear", {x, c.inputs[weight]}, {{"weight_layout", c.attributes().String("weight_layout")}},
                   label)[0];
  };
  const ir::Value embedded = c.Add("Gather", {c.inputs[kEmbed], c.inputs[kIds]}, {{"axis", int64_t{0}}}, "embed");
  const ir::Value both = c.Add("Concat", {norm(embedded, kENorm, "enorm"), norm(c.inputs[kH], kHNorm, "hnorm")},
                               {{"axis", int64_t{-1}}}, "eh");
  const ir::Value cur = linear(both, kEhW, "eh");

  const ir::Value n = norm(cur, kAttnNorm, "attention_norm");
  const ir::Value z =
      c.Reshape(linear(n, kQGate, "attention/q_gate"), {batch, length, heads, Extent(2) * size}, "attention");
  const auto half = [&](const Extent& start) {
    return c.Add("Narrow", {z},
                 {{"axis", int64_t{-1}}, {"start", std::vector<Extent>{start}}, {"length", std::vector<Extent>{size}}},
                 "attention");
  };
  const auto turned = [&](ir::Value x, Operand gamma, int64_t count, const char* label) {
    const ir::Value normal = norm(c.Reshape(x, {batch, length, Extent(count), size}, "attention"), gamma, label);
    const ir::Value packed = c.Reshape(normal, {batch, length, Extent(count * s.head_dim)}, "attention");
    return c.Block("RoPE", {packed, c.inputs[kCos], c.inputs[kSin]},
                   {{"head_dim", s.head_dim}, {"n_rot", s.n_rot}, {"style", c.attributes().String("rope_style")}},
                   label)[0];
  };
  const ir::Value q = turned(half(Extent(0)), kQNorm, s.heads, "attention/q_norm");
  const ir::Value k = turned(linear(n, kK, "attention/k"), kKNorm, s.kv_heads, "attention/k_norm");
  const ir::Value a =
      c.Block("Attention", {q, k, linear(n, kV, "attention/v")},
              {{"heads", s.heads}, {"kv_heads", s.kv_heads}, {"head_dim", s.head_dim}, {"mask", std::string("causal")}},
              "attention")[0];
  const ir::Value gate =
      c.Reshape(c.Add("Sigmoid", {half(size)}, {}, "attention"), {batch, length, heads * size}, "attention");
  const ir::Value attended = linear(c.Add("Mul", {a, gate}, {}, "attention"), kO, "attention/o");

  const std::vector<ir::Value> post =
      c.Block("ResidualRmsNorm", {attended, cur, c.inputs[kPostNorm], c.inputs[kPostNormBeta]}, eps, "post_norm");
  const ir::Value hidden =
      c.Add("Mul", {c.Add("Silu", {linear(post[0], kGate, "ffn/gate")}, {}, "ffn"), linear(post[0], kUp, "ffn/up")}, {},
            "ffn");
  const ir::Value cur3 = c.Add("Add", {post[1], linear(hidden, kDown, "ffn/down")}, {}, "ffn");
  // A row of each batch, of that batch.
  const ir::Value rows = c.Add("GatherND", {cur3, c.Reshape(c.inputs[kLast], {batch, Extent(1), Extent(1)}, "last")},
                               {{"batch_dims", int64_t{1}}}, "last");
  return c.Finish({linear(norm(rows, kHeadNorm, "head_norm"), kLmHead, "lm_head")});
}

std::vector<OperandDef> Operands() {
  const auto weight = ir::OperandKind::kWeight, index = ir::OperandKind::kIndex;
  std::vector<OperandDef> operands = {{.name = "h", .shape = "[B, S, E]"},
                                      {.name = "ids", .kind = index, .shape = "[B, S]"},
                                      {.name = "cos", .shape = "[S, w]; w: half or all of n_rot or head_dim"},
                                      {.name = "sin", .shape = "as cos"},
                                      {.name = "last_idx", .kind = index, .shape = "[B] or [B, 1]"},
                                      {.name = "embed", .kind = ir::OperandKind::kTable, .shape = "[V, E]"}};
  const auto add_norm = [&](const char* gamma, const char* beta, const char* shape) {
    operands.push_back({.name = gamma, .shape = shape});
    operands.push_back({.name = beta, .optional = true, .shape = shape});
  };
  const auto add_weight = [&](const char* name, const char* shape) {
    operands.push_back({.name = name, .kind = weight, .shape = shape});
  };
  add_norm("hnorm_g", "hnorm_b", "[E]");
  add_norm("enorm_g", "enorm_b", "[E]");
  add_weight("eh_w", "kn: [2E, E]; nk: the reverse");
  add_norm("attn_norm_g", "attn_norm_b", "[E]");
  add_weight("q_gate_w", "kn: [E, heads * 2 * head_dim]; nk: the reverse");
  add_weight("k_w", "kn: [E, kv_heads * head_dim]; nk: the reverse");
  add_weight("v_w", "as k_w");
  add_norm("q_norm_g", "q_norm_b", "[head_dim]");
  add_norm("k_norm_g", "k_norm_b", "[head_dim]");
  add_weight("o_w", "kn: [heads * head_dim, E]; nk: the reverse");
  add_norm("post_norm_g", "post_norm_b", "[E]");
  add_weight("gate_w", "kn: [E, F]; nk: [F, E]");
  add_weight("up_w", "as gate_w");
  add_weight("down_w", "kn: [F, E]; nk: [E, F]");
  add_norm("head_norm_g", "head_norm_b", "[E]");
  add_weight("lm_head", "kn: [E, vocabulary]; nk: the reverse");
  return operands;
}

}  // namespace

const BlockDef& Block_qwen35_mtp_head() {
  static const BlockDef* const block = Make({
      .name = "Qwen35MtpHead",
      .doc = "logits of the token after the next, from hidden states and the tokens behind them",
      .label = "qwen35_mtp_head",
      .operands = Operands(),
      .attributes = {{.name = "heads", .kind = ir::AttrKind::kInt},
                     {.name = "kv_heads", .kind = ir::AttrKind::kInt, .default_value = int64_t{0}, .doc = "0: heads"},
                     {.name = "head_dim", .kind = ir::AttrKind::kInt},
                     {.name = "n_rot", .kind = ir::AttrKind::kInt, .default_value = int64_t{0}, .doc = "0: head_dim"},
                     {.name = "eps", .kind = ir::AttrKind::kFloat, .default_value = 1e-5, .doc = "of all norms"},
                     {.name = "rope_style",
                      .kind = ir::AttrKind::kString,
                      .default_value = std::string("neox"),
                      .choices = {"gptj", "neox"}},
                     WeightLayoutAttribute()},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
