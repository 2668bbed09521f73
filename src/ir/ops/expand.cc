// Expand: the operand broadcast to `shape`, right-aligned.

#include "ir/identity.h"
#include "ir/pairs.h"
#include "ir/shape.h"
#include "ir/spelled_out.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const std::vector<Extent>& shape = context.attributes.Extents("shape");
  if (!context.BroadcastsTo(x.dims, shape))
    return context.AttributeError("shape", absl::StrCat("one that ", ToString(x.dims), " broadcasts to"));
  return std::vector<TensorType>{{x.dtype, shape}};
}

Status Reference(RefContext& context) {
  MoveElements(*context.operands[0], context.results[0], [](std::vector<int64_t>&) {});
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  std::vector<Extent> shape = context.node.results[0].dims;
  shape.emplace_back(2);
  return context.e.Finish({context.e.Add("Expand", {context.x[0]}, {{"shape", std::move(shape)}})});
}

Replacement Identity(const IdentityContext& context) {
  if (context.type(0) == context.result()) return context.inputs[0];
  if (context.type(0).elements() == context.result().elements()) return Reshaped(context, context.inputs[0]);
  return std::nullopt;
}

}  // namespace

const OpDef& Op_expand() {
  static const OpDef* const op = Make({
      .name = "Expand",
      .doc = "the operand broadcast to `shape`, right-aligned",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x", .shape = "broadcasts to shape"}},
      .attributes = {{.name = "shape", .kind = AttrKind::kExtents}},
      .infer = Infer,
      .map = [](MapContext& c) { return BroadcastOperand(c, 0); },
      .broadcasts = true,
      .identity = Identity,
      .reference = Reference,
      .pairs = Pairs,
      .onnx = "Expand",
      .examples = {{{"f32[1, 3]"}, {{"shape", std::vector<Extent>{4, 3}}}}},
  });
  return *op;
}

bool IsRepeat(const Node& node) { return node.op == &Op_expand(); }

StatusOr<Value> MakeRepeated(const MakeNode& make, Value x, const Extent& count, const Extent& times) {
  QUERN_ASSIGN(const Value column, MakeReshaped(make, x, {count, Extent(1)}));
  QUERN_ASSIGN(const Value rows, make("Expand", {column}, {{"shape", std::vector<Extent>{count, times}}}));
  return MakeReshaped(make, rows, {count * times});
}

}  // namespace quern::ir
