// Trilu: the upper or lower triangle of each matrix, zeros outside. The triangle begins, or ends, at the k-th diagonal,
// which may lie beyond the matrix.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  if (context.operands[0].rank() < 2) return context.ShapeError(0, "[.., M, N]");
  return std::vector<TensorType>{context.operands[0]};
}

// Upper: column >= row + k.
kir::ExprRef Map(MapContext& context) {
  const Attributes& attributes = context.node().attributes;
  const kir::Index& index = context.index();
  const kir::ExprRef diagonal = index[index.size() - 2] + kir::build::Int(attributes.Int("k")), column = index.back();
  const bool upper = attributes.Bool("upper");
  const kir::ExprRef kept = Call(Op::kLe, {upper ? diagonal : column, upper ? column : diagonal});
  const DType dtype = context.result_type().dtype;
  return kir::build::Select(kept, context.Operand(0, index),
                            kir::build::CastTo(dtype, kir::build::Num(0, DType::kF64)));
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const Attributes& attributes = context.node.attributes;
  const int64_t elements = y.elements();
  std::vector<int64_t> index(y.dims.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    const Wide off = Wide{index.back()} - index[index.size() - 2] - attributes.Int("k");
    if (attributes.Bool("upper") ? off >= 0 : off <= 0) y.Take(at, x, at);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_trilu() {
  static const OpDef* const op = Make({
      .name = "Trilu",
      .doc = "the upper or lower triangle of each matrix, zeros outside",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x", .shape = "[.., M, N]"}},
      .attributes =
          {{.name = "upper", .kind = AttrKind::kBool, .default_value = true},
           {.name = "k", .kind = AttrKind::kInt, .default_value = int64_t{0}, .doc = "the diagonal at the edge"}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .onnx = "Trilu",
      .examples = {{{"f32[2, 5, 7]"}},
                   {{"f32[S, 5]"}, {{"upper", false}, {"k", int64_t{2}}}},
                   {{"i32[7, 3]"}, {{"k", int64_t{-3}}}},
                   {{"bool[3, 3]"}, {{"upper", false}, {"k", int64_t{-17}}}}},
  });
  return *op;
}

}  // namespace quern::ir
