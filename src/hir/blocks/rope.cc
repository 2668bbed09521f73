// RoPE{head_dim, n_rot, style}: rotary position embedding of the first n_rot elements of each head; n_rot 0 means all.
//
//   x [.., S, heads * head_dim] (packed) or [.., S, heads, head_dim]
//   cos, sin [S, w], [1, S, w] or [B, S, w] with w one of n_rot/2, head_dim/2, n_rot, head_dim
//   with positions i32[S]: rows of cos and sin, which have any number

#include "hir/block.h"

namespace quern::hir {
namespace {

int64_t RotatedElements(const Attributes& attributes) {
  return attributes.Int("n_rot") == 0 ? attributes.Int("head_dim") : attributes.Int("n_rot");
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const int64_t head_dim = c.attributes.Int("head_dim"), n_rot = RotatedElements(c.attributes);
  if (head_dim < 1) return c.AttributeError("head_dim", "1 or more");
  if (n_rot < 2 || n_rot % 2 != 0 || n_rot > head_dim) {
    return c.AttributeError("n_rot", absl::StrFormat("even and at most %d", head_dim));
  }
  const bool packed = c.attributes.Bool("packed");
  const int least = packed ? 2 : 3;
  const TensorType& x = c.operand(0);
  QUERN_RETURN_IF_ERROR(c.ExpectRankAtLeast(0, least));
  if (!x.dims.back().is_constant() || x.dims.back().constant() % head_dim != 0 ||
      (!packed && x.dims.back() != Extent(head_dim))) {
    return c.ShapeError(0, absl::StrFormat("heads of %d", head_dim));
  }
  Extent positions = x.dims[x.rank() - least];
  if (c.has(3)) {
    QUERN_RETURN_IF_ERROR(c.ExpectDType(3, DType::kI32));
    QUERN_RETURN_IF_ERROR(c.ExpectDims(3, {positions}));
    QUERN_RETURN_IF_ERROR(c.ExpectRankAtLeast(1, 2));
    positions = c.operand(1).dims[c.operand(1).rank() - 2];
  }
  for (const int table : {1, 2}) {
    QUERN_RETURN_IF_ERROR(c.ExpectDType(table, x.dtype));
    const TensorType& type = c.operand(table);
    auto is = [&](int64_t width) { return type.rank() >= 2 && type.dims.back() == Extent(width); };
    const bool fits =
        (is(n_rot / 2) || is(head_dim / 2) || is(n_rot) || is(head_dim)) && type.dims[type.rank() - 2] == positions &&
        (type.rank() == 2 ||
         (type.rank() == 3 && (type.dims[0] == Extent(1) || (x.rank() > least && type.dims[0] == x.dims[0]))));
    if (!fits) return c.ShapeError(table, absl::StrFormat("[%s, %d]", positions.ToString(), n_rot / 2));
  }
  return std::vector<TensorType>{x};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  std::vector<ir::Value> operands = c.inputs;
  if (!c.has(3)) operands.pop_back();
  return c.Finish({c.Add("Rope", std::move(operands),
                         {{"head_dim", c.attributes().Int("head_dim")},
                          {"n_rot", RotatedElements(c.attributes())},
                          {"style", c.attributes().String("style")},
                          {"packed", c.attributes().Bool("packed")}})});
}

}  // namespace

const BlockDef& Block_rope() {
  static const BlockDef* const block = Make({
      .name = "RoPE",
      .doc = "rotary position embedding of the first n_rot elements of each head",
      .label = "rope",
      .operands = {{.name = "x", .shape = "[.., S, heads * head_dim], not packed [.., S, heads, head_dim]"},
                   {.name = "cos", .shape = "[S, w] or [1 or B, S, w]; w: half or all of n_rot or head_dim"},
                   {.name = "sin", .shape = "as cos"},
                   {.name = "positions", .kind = ir::OperandKind::kAny, .optional = true, .shape = "i32[S]"}},
      .attributes = {{.name = "head_dim", .kind = ir::AttrKind::kInt},
                     {.name = "n_rot", .kind = ir::AttrKind::kInt, .default_value = int64_t{0}, .doc = "0: head_dim"},
                     {.name = "style",
                      .kind = ir::AttrKind::kString,
                      .default_value = std::string("neox"),
                      .choices = {"gptj", "neox"}},
                     {.name = "packed", .kind = ir::AttrKind::kBool, .default_value = true}},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
