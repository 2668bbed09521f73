// GatedResidual: x + gate y, where the gate broadcasts.

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (!context.BroadcastsTo(context.operands[1].dims, x.dims))
    return context.ShapeError(1, absl::StrCat("one that broadcasts to ", ToString(x.dims)));
  if (!context.Equal(context.operands[2].dims, x.dims)) return context.ShapeError(2, ToString(x.dims));
  return std::vector<TensorType>{x};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value gated = e.Add("Mul", {e.Wide(inputs[1]), e.Wide(inputs[2])});
  return e.Finish({e.Stored(e.Add("Add", {e.Wide(inputs[0]), gated}), node.results[0].dtype)});
}

// `combine` makes an element of x and of gate y.
template <typename Combine>
Status Each(RefContext& context, const Combine& combine) {
  RefTensor& y = context.results[0];
  std::vector<int64_t> index(y.dims.size());
  const int64_t elements = y.elements();
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index))
    y.data[at] = combine(context.operands[0]->data[at], context.operands[1]->At(index) * context.operands[2]->data[at]);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_gated_residual() {
  static const OpDef* const op = Make({
      .name = "GatedResidual",
      .doc = "x + gate y",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat},
                   {.name = "gate", .kind = OperandKind::kFloat, .shape = "broadcasts to x"},
                   {.name = "y", .kind = OperandKind::kFloat, .shape = "as x"}},
      .infer = Infer,
      .reference =
          [](RefContext& c) {
            return Each(c, [&](double x, double gated) { return RoundTo(c.results[0].dtype, x + gated); });
          },
      .expand = Expand,
      .magnitude =
          [](RefContext& c) { return Each(c, [](double x, double gated) { return std::fabs(x) + std::fabs(gated); }); },
      .examples = {{{"f32[2, 5, 7]", "f32[2, 1, 7]", "f32[2, 5, 7]"}},
                   {{"f16[S, 3]", "f16[3]", "f16[S, 3]"}},
                   {{"f32[3]", "f32[]", "f32[3]"}}},
  });
  return *op;
}

}  // namespace quern::ir
