// Tile: x repeated along each dimension.

#include <algorithm>

#include "ir/identity.h"
#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  const std::vector<int64_t>& repeats = context.attributes.Ints("repeats");
  if (repeats.size() != result.dims.size() ||
      std::any_of(repeats.begin(), repeats.end(), [](int64_t n) { return n < 0; }))
    return context.AttributeError("repeats", absl::StrFormat("%d numbers of 0 or more", result.rank()));
  for (size_t d = 0; d < repeats.size(); ++d) result.dims[d] = result.dims[d] * Extent(repeats[d]);
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  namespace kb = kir::build;
  const std::vector<Extent>& dims = context.operand_type(0).dims;
  kir::Index at = context.index();
  kir::ExprRef otherwise;
  for (size_t d = 0; d < at.size(); ++d) {
    if (dims[d] == Extent(1)) {
      at[d] = kb::Int(0);
    } else if (context.node().attributes.Ints("repeats")[d] != 1 && dims[d] != Extent(0)) {
      // A symbol may be 0: no element is computed then, and none would be read.
      const bool constant = dims[d].is_constant();
      at[d] = at[d] % (constant ? kb::FromExtent(dims[d]) : kb::Max(kb::Int(1), kb::FromExtent(dims[d])));
      if (!constant) otherwise = kb::CastTo(context.result_type().dtype, kb::Num(0, DType::kF64));
    }
  }
  return context.Operand(0, std::move(at), otherwise);
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  MoveElements(x, context.results[0], [&](std::vector<int64_t>& index) {
    for (size_t d = 0; d < index.size(); ++d) index[d] %= x.dims[d];
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_tile() {
  static const OpDef* const op = Make({
      .name = "Tile",
      .doc = "x repeated along each dimension",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "repeats", .kind = AttrKind::kInts, .doc = "by dimension"}},
      .infer = Infer,
      .map = Map,
      .identity = Unchanged,
      .reference = Reference,
      .onnx = "Tile",
      .examples = {{{"f32[3, 5]"}, {{"repeats", std::vector<int64_t>{2, 3}}}},
                   {{"u8[1, 7, 2]"}, {{"repeats", std::vector<int64_t>{5, 1, 4}}}},
                   {{"f16[S, 3]"}, {{"repeats", std::vector<int64_t>{1, 2}}}},
                   {{"f32[S]"}, {{"repeats", std::vector<int64_t>{3}}}},
                   {{"i32[3]"}, {{"repeats", std::vector<int64_t>{0}}}}},
  });
  return *op;
}

}  // namespace quern::ir
