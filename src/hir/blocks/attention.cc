// Attention{heads, kv_heads, head_dim, mask, window, scale, softcap, layout}: softmax(q k^T scale + mask) v per head.
//
// kv_heads 0 means heads. A mask operand comes with mask "custom" ([B, Sk], below 0.5 or false is masked) and "bias"
// (added; broadcast to [B, heads, Sq, Sk]). "sliding" sees the query's own key and `window` before it. kv_len, and with
// it q_start and blocks, say which rows and keys are whose: src/ir/ops/attention.cc.

#include "ir/attention.h"
#include "hir/block.h"
#include "ir/spell_attention.h"

namespace quern::hir {
namespace {

enum Operand { kQ, kK, kV, kMask, kQStart, kKvLen, kBlocks };

int64_t KvHeads(const Attributes& attributes) {
  return attributes.Int("kv_heads") == 0 ? attributes.Int("heads") : attributes.Int("kv_heads");
}

// An operand of `heads` heads: batch and sequence are taken from what it has.
Status CheckHeads(const InferContext& c, const ir::AttentionShape& shape, int operand, int64_t heads) {
  const TensorType& type = c.operand(operand);
  const Extent size(shape.head_dim);
  switch (shape.layout) {
    case ir::AttentionShape::Layout::kPacked:
      if (type.rank() != 3) break;
      return c.ExpectDims(operand, {type.dims[0], type.dims[1], Extent(heads * shape.head_dim)});
    case ir::AttentionShape::Layout::kBshd:
      if (type.rank() != 4) break;
      return c.ExpectDims(operand, {type.dims[0], type.dims[1], Extent(heads), size});
    case ir::AttentionShape::Layout::kBhsd:
      if (type.rank() != 4) break;
      return c.ExpectDims(operand, {type.dims[0], Extent(heads), type.dims[2], size});
  }
  return c.ShapeError(operand, shape.DimsText(heads));
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const int64_t heads = c.attributes.Int("heads"), kv_heads = KvHeads(c.attributes),
                head_dim = c.attributes.Int("head_dim");
  if (heads < 1) return c.AttributeError("heads", "1 or more");
  if (kv_heads < 1 || heads % kv_heads != 0)
    return c.AttributeError("kv_heads", absl::StrFormat("a divisor of %d", heads));
  if (head_dim < 1) return c.AttributeError("head_dim", "1 or more");
  if (c.attributes.Int("window") < 0) return c.AttributeError("window", "0 or more");
  if (c.attributes.Float("softcap") < 0) return c.AttributeError("softcap", "0 or more");
  const ir::AttentionShape shape(c.attributes);
  QUERN_RETURN_IF_ERROR(CheckHeads(c, shape, 0, heads));
  QUERN_RETURN_IF_ERROR(CheckHeads(c, shape, 1, kv_heads));
  const TensorType &q = c.operand(0), &k = c.operand(1);
  const bool sequences = c.has(kKvLen);
  for (const Operand operand : {kQStart, kBlocks}) {
    if (c.has(operand) && !sequences)
      return c.Error(DiagnosticCode::kInputCount, "kv_len", "kv_len beside q_start and blocks", "none");
  }
  if (!sequences && ir::ExtentConstraint{k.dims[0], q.dims[0]}.Never(c.symbols))
    return c.ShapeError(1, absl::StrFormat("the batch %s of q", q.dims[0].ToString()));
  QUERN_RETURN_IF_ERROR(c.ExpectDims(2, k.dims));
  for (int operand = 0; operand < 3; ++operand) {
    if (const char* wanted = ir::WantedBeside(q.dtype, c.operand(operand).dtype))
      return c.UnsupportedError(operand, wanted);
  }
  const std::string& mask = c.attributes.String("mask");
  const bool wants_mask = mask == "custom" || mask == "bias";
  if (wants_mask != c.has(kMask)) {
    return c.Error(DiagnosticCode::kInputCount, "mask", wants_mask ? "4" : "3", c.has(kMask) ? "4" : "3");
  }
  if (sequences) return std::vector<TensorType>{q};  // the op has the rules of those
  const int axis = shape.sequence_axis();
  if (mask == "custom") QUERN_RETURN_IF_ERROR(c.ExpectDims(3, {q.dims[0], k.dims[axis]}));
  if (mask == "bias") {
    std::vector<ir::ExtentConstraint> constraints;
    const std::vector<Extent> full = {q.dims[0], Extent(heads), q.dims[axis], k.dims[axis]};
    const auto dims = ir::BroadcastDims(c.operand(3).dims, full, &constraints);
    if (!dims.ok() || *dims != full) return c.ShapeError(3, "what broadcasts to " + ir::ToString(full));
  }
  return std::vector<TensorType>{q};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  Attributes attributes = c.attributes();
  attributes.Set("kv_heads", KvHeads(attributes));
  std::vector<ir::Value> operands;
  for (const ir::Value& input : c.inputs) {
    if (input.node >= 0) operands.push_back(input);
  }
  std::string sequences = "none";
  if (c.has(kKvLen))
    sequences = c.has(kQStart) ? c.has(kBlocks) ? "ragged_paged" : "ragged" : c.has(kBlocks) ? "paged" : "lengths";
  attributes.Set("sequences", sequences);
  return c.Finish({c.Add("Attention", std::move(operands), std::move(attributes))});
}

}  // namespace

const BlockDef& Block_attention() {
  static const BlockDef* const block = Make({
      .name = "Attention",
      .doc = "softmax(q k^T scale + mask) v per head, with grouped heads",
      .label = "attention",
      .operands = {{.name = "q", .shape = "[B, Sq, heads * head_dim], or by layout"},
                   {.name = "k", .shape = "[B, Sk, kv_heads * head_dim], or by layout"},
                   {.name = "v", .shape = "of the extents of k"},
                   {.name = "mask",
                    .kind = ir::OperandKind::kAny,
                    .optional = true,
                    .shape = "custom: [B, Sk]; bias: broadcasts to [B, heads, Sq, Sk]"},
                   {.name = "q_start", .kind = ir::OperandKind::kAny, .optional = true, .shape = "i32[B + 1]"},
                   {.name = "kv_len", .kind = ir::OperandKind::kAny, .optional = true, .shape = "i32[B]"},
                   {.name = "blocks", .kind = ir::OperandKind::kAny, .optional = true, .shape = "i32[B, blocks]"}},
      .attributes =
          {{.name = "heads", .kind = ir::AttrKind::kInt},
           {.name = "kv_heads", .kind = ir::AttrKind::kInt, .default_value = int64_t{0}, .doc = "0: heads"},
           {.name = "head_dim", .kind = ir::AttrKind::kInt},
           {.name = "mask",
            .kind = ir::AttrKind::kString,
            .default_value = std::string("none"),
            .choices = {"none", "causal", "sliding", "custom", "bias"}},
           {.name = "window",
            .kind = ir::AttrKind::kInt,
            .default_value = int64_t{0},
            .doc = "sliding: keys before the query's own"},
           {.name = "scale", .kind = ir::AttrKind::kFloat, .default_value = 0.0, .doc = "0: 1 / sqrt(head_dim)"},
           {.name = "softcap", .kind = ir::AttrKind::kFloat, .default_value = 0.0, .doc = "0: none"},
           {.name = "layout",
            .kind = ir::AttrKind::kString,
            .default_value = std::string("packed"),
            .choices = {"packed", "bshd", "bhsd"}}},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
