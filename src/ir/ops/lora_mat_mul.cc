// LoraMatMul: x W + scale (x A) B, a weight beside its correction of low rank, in which x A comes first.

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

// The rules of MatMul, in the words of this op.
StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &w = context.operands[1], &a = context.operands[2],
                   &b = context.operands[3];
  if (x.rank() < 2) return context.ShapeError(0, "[.., M, K]");
  if (!context.Equal(w.dims, std::vector<Extent>{x.dims.back(), w.rank() == 2 ? w.dims[1] : Extent(0)}))
    return context.ShapeError(1, absl::StrFormat("[%s, N]", x.dims.back().ToString()));
  if (a.rank() != 2 || !context.Equal(a.dims[0], x.dims.back()))
    return context.ShapeError(2, absl::StrFormat("[%s, r]", x.dims.back().ToString()));
  const std::vector<Extent> back = {a.dims[1], w.dims[1]};
  if (!context.Equal(b.dims, back)) return context.ShapeError(3, ToString(back));
  TensorType result = x;
  result.dims.back() = w.dims[1];
  return std::vector<TensorType>{std::move(result)};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value x = e.Wide(inputs[0]);
  const Value low = e.Add("MatMul", {e.Add("MatMul", {x, inputs[2]}), inputs[3]});
  const Value scaled = e.Add("Mul", {low, e.Scalar(node.attributes.Float("scale"), graph.type(x).dtype)});
  return e.Finish({e.Stored(e.Add("Add", {e.Add("MatMul", {x, inputs[1]}), scaled}), node.results[0].dtype)});
}

// With `sizes` all terms count by their size.
void Products(RefContext& context, bool sizes) {
  const RefTensor &x = *context.operands[0], &w = *context.operands[1], &a = *context.operands[2],
                  &b = *context.operands[3];
  RefTensor& y = context.results[0];
  const auto of = [&](double value) { return sizes ? std::fabs(value) : value; };
  const double scale = of(context.node.attributes.Float("scale"));
  const int64_t k = w.dims[0], n = w.dims[1], r = a.dims[1];
  for (size_t at = 0; at < y.data.size(); ++at) {
    const int64_t row = static_cast<int64_t>(at) / n * k, column = static_cast<int64_t>(at) % n;
    double sum = 0, low = 0;
    for (int64_t i = 0; i < k; ++i) sum += of(x.data[row + i] * w.data[i * n + column]);
    for (int64_t j = 0; j < r; ++j) {
      double product = 0;
      for (int64_t i = 0; i < k; ++i) product += of(x.data[row + i] * a.data[i * r + j]);
      low += product * of(b.data[j * n + column]);
    }
    y.data[at] = sizes ? sum + scale * low : RoundTo(y.dtype, sum + scale * low);
  }
}

}  // namespace

const OpDef& Op_lora_mat_mul() {
  static const OpDef* const op = Make({
      .name = "LoraMatMul",
      .doc = "x w + scale (x a) b",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[.., M, K]"},
                   {.name = "w", .kind = OperandKind::kFloat, .shape = "[K, N]"},
                   {.name = "a", .kind = OperandKind::kFloat, .shape = "[K, r]"},
                   {.name = "b", .kind = OperandKind::kFloat, .shape = "[r, N]"}},
      .attributes = {{.name = "scale", .kind = AttrKind::kFloat, .default_value = 1.0}},
      .infer = Infer,
      .reference = [](RefContext& c) -> Status { return Products(c, false), absl::OkStatus(); },
      .expand = Expand,
      .rtol = 4e-6,
      .magnitude = [](RefContext& c) -> Status { return Products(c, true), absl::OkStatus(); },
      .examples = {{{"f32[5, 7]", "f32[7, 11]", "f32[7, 2]", "f32[2, 11]"}, {{"scale", 0.5}}},
                   {{"f16[2, S, 17]", "f16[17, 3]", "f16[17, 1]", "f16[1, 3]"}},
                   {{"f32[1, 33]", "f32[33, 5]", "f32[33, 3]", "f32[3, 5]"}, {{"scale", 2.0}}}},
  });
  return *op;
}

}  // namespace quern::ir
