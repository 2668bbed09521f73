// FusedTransformerLayer: an encoder layer with its norms behind: h = LN(x + attention(x)), y = LN(h + mlp(h)), with
// biases everywhere and Gelu between the products of the mlp.

#include <cmath>

#include "ir/composite.h"
#include "ir/reference_chain.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

constexpr const char* kNames[] = {"x",     "qkv_w", "qkv_b", "out_w", "out_b", "ln1_g", "ln1_b",
                                  "fc1_w", "fc1_b", "fc2_w", "fc2_b", "ln2_g", "ln2_b", "mask"};
enum Place { kX, kQkvW, kQkvB, kOutW, kOutB, kLn1G, kLn1B, kFc1W, kFc1B, kFc2W, kFc2B, kLn2G, kLn2B, kMask };

bool HasMask(const Attributes& attributes) {
  return attributes.String("mask") == "custom" || attributes.String("mask") == "bias";
}

Attributes BlockOf(const Attributes& attributes, int64_t width) {
  return {{"heads", attributes.Int("heads")},
          {"head_dim", width / attributes.Int("heads")},
          {"mask", attributes.String("mask")},
          {"bias", true}};
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[kX];
  const int64_t heads = context.attributes.Int("heads");
  if (x.rank() != 3 || !x.dims[2].is_constant()) return context.ShapeError(kX, "[B, S, a number]");
  if (heads < 1 || x.dims[2].constant() % heads != 0)
    return context.AttributeError("heads", absl::StrFormat("a divisor of %s", x.dims[2].ToString()));
  const size_t count = HasMask(context.attributes) ? 14 : 13;
  if (context.operands.size() != count)
    return context.Error(DiagnosticCode::kInputCount, "mask", absl::StrFormat("%u operands", count),
                         absl::StrFormat("%u", context.operands.size()));
  const Extent &e = x.dims[2], hidden = context.operands[kFc1W].rank() == 2 ? context.operands[kFc1W].dims[1] : 0;
  const Extent all = e * Extent(3);
  const std::vector<std::vector<Extent>> wanted = {x.dims,      {e, all}, {all},       {e, e}, {e}, {e}, {e},
                                                   {e, hidden}, {hidden}, {hidden, e}, {e},    {e}, {e}};
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!context.Equal(context.operands[i].dims, wanted[i]))
      return context.ShapeError(static_cast<int>(i), ToString(wanted[i]));
  }
  const std::vector<Extent> keys = {x.dims[0], x.dims[1]}, scores = {x.dims[0], Extent(heads), x.dims[1], x.dims[1]};
  if (context.attributes.String("mask") == "custom" && !context.Equal(context.operands[kMask].dims, keys))
    return context.ShapeError(kMask, ToString(keys));
  if (context.attributes.String("mask") == "bias" && !context.BroadcastsTo(context.operands[kMask].dims, scores))
    return context.ShapeError(kMask, absl::StrCat("what broadcasts to ", ToString(scores)));
  return std::vector<TensorType>{x};
}

// The layer made of `add(op, operands, attributes)`, for a graph and for a chain of references.
template <typename V, typename Add>
V Layer(const Attributes& attributes, int64_t width, const std::vector<V>& in, const Add& add) {
  const Attributes eps = {{"eps", attributes.Float("eps")}};
  std::vector<V> block = {in[kX], in[kQkvW], in[kOutW]};
  if (HasMask(attributes)) block.push_back(in[kMask]);
  block.insert(block.end(), {in[kQkvB], in[kOutB]});
  const V attention = add("FusedAttentionBlock", std::move(block), BlockOf(attributes, width));
  const V h = add("LayerNorm", {add("Add", {in[kX], attention}, {}), in[kLn1G], in[kLn1B]}, eps);
  const V up = add("FusedMatMulBiasAct", {h, in[kFc1W], in[kFc1B]}, {{"act", std::string("Gelu")}});
  const V down = add("FusedMatMulBiasAct", {up, in[kFc2W], in[kFc2B]}, {});
  return add("LayerNorm", {add("Add", {h, down}, {}), in[kLn2G], in[kLn2B]}, eps);
}

bool IsWeight(size_t place) { return place == kQkvW || place == kOutW || place == kFc1W || place == kFc2W; }

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const int64_t width = node.results[0].dims[2].constant();
  std::vector<Value> in;
  for (size_t i = 0; i < inputs.size(); ++i) in.push_back(IsWeight(i) ? inputs[i] : e.Wide(inputs[i]));
  // The block takes operands of one dtype; its weights are widened there.
  if (e.ok() && e.type(in[kX]).dtype != e.type(in[kQkvW]).dtype)
    in[kQkvW] = e.Wide(in[kQkvW]), in[kOutW] = e.Wide(in[kOutW]);
  const Value y =
      Layer<Value>(node.attributes, width, in, [&](const char* op, std::vector<Value> operands, Attributes a) {
        return e.Add(op, std::move(operands), std::move(a));
      });
  return e.Finish({e.Stored(y, node.results[0].dtype)});
}

Status Chain(RefContext& context) {
  ReferenceChain chain(context, /*magnitude=*/false);
  const std::vector<const RefTensor*> in(context.operands.begin(), context.operands.end());
  const auto run = [&](const char* op, std::vector<const RefTensor*> operands, Attributes a) {
    return chain.Run(op, std::move(operands), std::move(a));
  };
  return chain.Give(0, Layer<const RefTensor*>(context.node.attributes, context.results[0].dims[2], in, run));
}

// What a norm leaves is about as large as gamma and beta, whatever went in.
Status Magnitude(RefContext& context) {
  QUERN_RETURN_IF_ERROR(Chain(context));
  std::vector<double>& y = context.results[0].data;
  const std::vector<double>&gamma = context.operands[kLn2G]->data, &beta = context.operands[kLn2B]->data;
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = 10 * std::fabs(y[i]) + 40 * std::fabs(gamma[i % gamma.size()]) + std::fabs(beta[i % beta.size()]);
  return absl::OkStatus();
}

std::vector<OperandDef> OperandDefs() {
  constexpr const char* kShapes[] = {"[B, S, E]", "[E, 3 E]",
                                     "[3 E]",     "[E, E]",
                                     "[E]",       "[E]",
                                     "[E]",       "[E, H]",
                                     "[H]",       "[H, E]",
                                     "[E]",       "[E]",
                                     "[E]",       "custom: [B, S]; bias: broadcasts to [B, heads, S, S]"};
  std::vector<OperandDef> defs;
  for (int i = 0; i <= kMask; ++i)
    defs.push_back({.name = kNames[i], .kind = OperandKind::kFloat, .shape = kShapes[i], .optional = i == kMask});
  return defs;
}

}  // namespace

const OpDef& Op_fused_transformer_layer() {
  static const OpDef* const op = Make({
      .name = "FusedTransformerLayer",
      .doc = "an encoder layer: LN(x + attention), then LN(h + mlp(h)) with Gelu",
      .kind = OpKind::kComposite,
      .operands = OperandDefs(),
      .attributes = {{.name = "heads", .kind = AttrKind::kInt},
                     {.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5},
                     {.name = "mask",
                      .kind = AttrKind::kString,
                      .default_value = std::string("none"),
                      .choices = {"none", "causal", "custom", "bias"}}},
      .infer = Infer,
      .reference = Chain,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Magnitude,
      .examples = {{{"f32[2, 3, 8]", "f32[8, 24]", "f32[24]", "f32[8, 8]", "f32[8]", "f32[8]", "f32[8]", "f32[8, 11]",
                     "f32[11]", "f32[11, 8]", "f32[8]", "f32[8]", "f32[8]"},
                    {{"heads", int64_t{2}}}},
                   {{"f32[1, S, 6]", "f32[6, 18]", "f32[18]", "f32[6, 6]", "f32[6]", "f32[6]", "f32[6]", "f32[6, 7]",
                     "f32[7]", "f32[7, 6]", "f32[6]", "f32[6]", "f32[6]", "f32[1, S]"},
                    {{"heads", int64_t{3}}, {"mask", std::string("custom")}}}},
  });
  return *op;
}

}  // namespace quern::ir
