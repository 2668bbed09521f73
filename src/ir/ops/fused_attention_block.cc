// FusedAttentionBlock: x qkv_w, cut into q, k and v in this order, attention of the heads, and its product with out_w.
// Operands behind out_w are there as attributes say, in this order: mask, the biases of both products, cos and sin.

#include "ir/composite.h"
#include "ir/reference_chain.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

// Where operands stand; -1: there is none.
struct Operands {
  int mask = -1, qkv_b = -1, out_b = -1, cos = -1, sin = -1, count = 3;

  explicit Operands(const Attributes& attributes) {
    const std::string& kind = attributes.String("mask");
    if (kind == "custom" || kind == "bias") mask = count++;
    if (attributes.Bool("bias")) qkv_b = count++, out_b = count++;
    if (attributes.Bool("rope")) cos = count++, sin = count++;
  }
};

struct Heads {
  int64_t heads, kv_heads, head_dim;

  explicit Heads(const Attributes& attributes)
      : heads(attributes.Int("heads")),
        kv_heads(attributes.Int("kv_heads") == 0 ? heads : attributes.Int("kv_heads")),
        head_dim(attributes.Int("head_dim")) {}
  int64_t width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
};

Attributes RopeOf(const Attributes& attributes) {
  const int64_t width = attributes.Int("head_dim");
  return {{"head_dim", width}, {"n_rot", width}, {"style", attributes.String("rope_style")}};
}

Attributes AttentionOf(const Attributes& attributes) {
  const Heads heads(attributes);
  return {{"heads", heads.heads},
          {"kv_heads", heads.kv_heads},
          {"head_dim", heads.head_dim},
          {"mask", attributes.String("mask")}};
}

Attributes Part(int64_t start, int64_t length) {
  return {{"axis", int64_t{-1}}, {"start", std::vector<Extent>{start}}, {"length", std::vector<Extent>{length}}};
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &out_w = context.operands[2];
  const Heads heads(context.attributes);
  if (heads.heads < 1) return context.AttributeError("heads", "1 or more");
  if (heads.kv_heads < 1 || heads.heads % heads.kv_heads != 0)
    return context.AttributeError("kv_heads", absl::StrFormat("a divisor of %d", heads.heads));
  if (heads.head_dim < 1) return context.AttributeError("head_dim", "1 or more");
  if (context.attributes.Bool("rope") && heads.head_dim % 2 != 0)
    return context.AttributeError("head_dim", "an even number to rotate");
  const Operands operands(context.attributes);
  if (operands.count != static_cast<int>(context.operands.size()))
    return context.Error(DiagnosticCode::kInputCount, "mask", absl::StrFormat("%d operands", operands.count),
                         absl::StrFormat("%u", context.operands.size()));
  if (x.rank() != 3) return context.ShapeError(0, "[B, S, E]");
  const int64_t all = heads.width() + 2 * heads.kv_width();
  const auto expect = [&](int operand, const char* name, const std::vector<Extent>& dims) -> Status {
    if (operand < 0 || context.Equal(context.operands[operand].dims, dims)) return absl::OkStatus();
    return context.Error(DiagnosticCode::kShapeMismatch, name, ToString(dims), context.operands[operand].ToString());
  };
  QUERN_RETURN_IF_ERROR(expect(1, "qkv_w", {x.dims[2], all}));
  if (out_w.rank() != 2) return context.ShapeError(2, absl::StrFormat("[%d, E]", heads.width()));
  QUERN_RETURN_IF_ERROR(expect(2, "out_w", {heads.width(), out_w.dims[1]}));
  QUERN_RETURN_IF_ERROR(expect(operands.qkv_b, "qkv_b", {all}));
  QUERN_RETURN_IF_ERROR(expect(operands.out_b, "out_b", {out_w.dims[1]}));
  for (const auto& [operand, name] : {std::pair(operands.cos, "cos"), std::pair(operands.sin, "sin")})
    QUERN_RETURN_IF_ERROR(expect(operand, name, {x.dims[1], heads.head_dim / 2}));
  if (context.attributes.String("mask") == "custom")
    QUERN_RETURN_IF_ERROR(expect(operands.mask, "mask", {x.dims[0], x.dims[1]}));
  const std::vector<Extent> scores = {x.dims[0], Extent(heads.heads), x.dims[1], x.dims[1]};
  if (context.attributes.String("mask") == "bias" &&
      !context.BroadcastsTo(context.operands[operands.mask].dims, scores))
    return context.Error(DiagnosticCode::kShapeMismatch, "mask", absl::StrCat("what broadcasts to ", ToString(scores)),
                         context.operands[operands.mask].ToString());
  return std::vector<TensorType>{{x.dtype, {x.dims[0], x.dims[1], out_w.dims[1]}}};
}

// The block made of `add(op, operands, attributes)`, for a graph and for a chain of references.
template <typename V, typename Add>
V Block(const Attributes& attributes, const std::vector<V>& in, const Add& add) {
  const Operands operands(attributes);
  const Heads heads(attributes);
  V qkv = add("MatMul", {in[0], in[1]}, {});
  if (operands.qkv_b >= 0) qkv = add("Add", {qkv, in[operands.qkv_b]}, {});
  V q = add("Narrow", {qkv}, Part(0, heads.width()));
  V k = add("Narrow", {qkv}, Part(heads.width(), heads.kv_width()));
  const V v = add("Narrow", {qkv}, Part(heads.width() + heads.kv_width(), heads.kv_width()));
  if (operands.cos >= 0) {
    q = add("Rope", {q, in[operands.cos], in[operands.sin]}, RopeOf(attributes));
    k = add("Rope", {k, in[operands.cos], in[operands.sin]}, RopeOf(attributes));
  }
  std::vector<V> seen = {q, k, v};
  if (operands.mask >= 0) seen.push_back(in[operands.mask]);
  const V y = add("MatMul", {add("Attention", std::move(seen), AttentionOf(attributes)), in[2]}, {});
  return operands.out_b >= 0 ? add("Add", {y, in[operands.out_b]}, {}) : y;
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  std::vector<Value> in;
  for (size_t i = 0; i < inputs.size(); ++i) in.push_back(i == 1 || i == 2 ? inputs[i] : e.Wide(inputs[i]));
  const Value y = Block<Value>(node.attributes, in, [&](const char* op, std::vector<Value> operands, Attributes a) {
    return e.Add(op, std::move(operands), std::move(a));
  });
  return e.Finish({e.Stored(y, node.results[0].dtype)});
}

Status Chain(RefContext& context, bool magnitude) {
  ReferenceChain chain(context, magnitude);
  const std::vector<const RefTensor*> in(context.operands.begin(), context.operands.end());
  return chain.Give(0,
                    Block<const RefTensor*>(context.node.attributes, in,
                                            [&](const char* op, std::vector<const RefTensor*> operands, Attributes a) {
                                              return chain.Run(op, std::move(operands), std::move(a));
                                            }));
}

// Roundings of the scores move the weights, and each product adds its own.
Status Magnitude(RefContext& context) {
  QUERN_RETURN_IF_ERROR(Chain(context, /*magnitude=*/true));
  for (double& size : context.results[0].data) size *= 5;
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_fused_attention_block() {
  static const OpDef* const op = Make({
      .name = "FusedAttentionBlock",
      .doc = "attention of q, k and v that are one product of x, and its product with out_w",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[B, S, E]"},
                   {.name = "qkv_w", .kind = OperandKind::kFloat, .shape = "[E, (heads + 2 kv_heads) head_dim]"},
                   {.name = "out_w", .kind = OperandKind::kFloat, .shape = "[heads head_dim, N]"},
                   {.name = "mask",
                    .kind = OperandKind::kFloat,
                    .shape = "custom: [B, S]; bias: broadcasts to [B, heads, S, S]",
                    .optional = true},
                   {.name = "qkv_b", .kind = OperandKind::kFloat, .shape = "as many as qkv_w", .optional = true},
                   {.name = "out_b", .kind = OperandKind::kFloat, .shape = "[N]", .optional = true},
                   {.name = "cos", .kind = OperandKind::kFloat, .shape = "[S, head_dim / 2]", .optional = true},
                   {.name = "sin", .kind = OperandKind::kFloat, .shape = "as cos", .optional = true}},
      .attributes = {{.name = "heads", .kind = AttrKind::kInt},
                     {.name = "kv_heads", .kind = AttrKind::kInt, .default_value = int64_t{0}, .doc = "0: heads"},
                     {.name = "head_dim", .kind = AttrKind::kInt},
                     {.name = "mask",
                      .kind = AttrKind::kString,
                      .default_value = std::string("none"),
                      .choices = {"none", "causal", "custom", "bias"}},
                     {.name = "bias", .kind = AttrKind::kBool, .default_value = false, .doc = "of both products"},
                     {.name = "rope", .kind = AttrKind::kBool, .default_value = false, .doc = "q and k are rotated"},
                     {.name = "rope_style",
                      .kind = AttrKind::kString,
                      .default_value = std::string("neox"),
                      .choices = {"gptj", "neox"}}},
      .infer = Infer,
      .reference = [](RefContext& c) { return Chain(c, false); },
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Magnitude,
      .examples =
          {{{"f32[2, 3, 8]", "f32[8, 24]", "f32[8, 5]"}, {{"heads", int64_t{2}}, {"head_dim", int64_t{4}}}},
           {{"f32[1, S, 6]", "f32[6, 32]", "f32[16, 6]", "f32[32]", "f32[6]"},
            {{"heads", int64_t{4}},
             {"kv_heads", int64_t{2}},
             {"head_dim", int64_t{4}},
             {"mask", std::string("causal")},
             {"bias", true}}},
           {{"f32[2, 5, 8]", "f32[8, 24]", "f32[8, 7]", "f32[2, 5]", "f32[5, 2]", "f32[5, 2]"},
            {{"heads", int64_t{2}}, {"head_dim", int64_t{4}}, {"mask", std::string("custom")}, {"rope", true}}}},
  });
  return *op;
}

}  // namespace quern::ir
