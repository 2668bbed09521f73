// Complex: numbers of c64 from their parts.

#include "ir/pairs.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  for (int i = 0; i < 2; ++i) {
    if (context.operands[i].dtype != DType::kF32) return context.UnsupportedError(i, "f32");
  }
  QUERN_ASSIGN(std::vector<Extent> dims, context.Broadcast(1, context.operands[0].dims));
  return std::vector<TensorType>{{DType::kC64, std::move(dims)}};
}

Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  std::vector<int64_t> index(y.dims.size());
  const int64_t elements = y.elements();
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index))
    y.SetComplex(at, {context.operands[0]->At(index), context.operands[1]->At(index)});
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  const auto part = [&](int i) {
    return context.e.Add("Expand", {context.x[i]}, {{"shape", context.node.results[0].dims}});
  };
  return context.e.Finish({PairsOf(context.e, {part(0), part(1)})});
}

}  // namespace

const OpDef& Op_complex() {
  static const OpDef* const op = Make({
      .name = "Complex",
      .doc = "re + i im, c64",
      .kind = OpKind::kComposite,
      .operands = {{.name = "re", .kind = OperandKind::kFloat}, {.name = "im", .kind = OperandKind::kFloat}},
      .infer = Infer,
      .reference = Reference,
      .pairs = Pairs,
      .rtol = 0,
      .examples = {{{"f32[2, 3]", "f32[3]"}}, {{"f32[S, 1, 5]", "f32[7, 5]"}}},
  });
  return *op;
}

}  // namespace quern::ir
