// ReduceSumSquare: the sum of x^2 over axes.

#include <algorithm>
#include <cmath>

#include "ir/composite.h"
#include "ir/reduction.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<int64_t>& axes = node.attributes.Ints("axes");
  const Value x = e.Wide(inputs[0]);
  const Value y = e.Reduced("sum", e.Add("Mul", {x, x}), axes);
  return e.Finish({e.Sized(e.Stored(y, node.results[0].dtype), node.results[0].dims)});
}

Status Reference(RefContext& context) {
  if (IsInteger(context.results[0].dtype)) {
    ReduceIntegers(context, [](std::span<const Wide> terms) {
      Wide sum = 0;
      for (const Wide term : terms) sum = static_cast<int64_t>(static_cast<uint64_t>(sum + Times(term, term)));
      return sum;
    });
    return absl::OkStatus();
  }
  ReduceFloats(context, [](std::span<const double> terms) {
    double sum = 0;
    for (const double term : terms) sum += term * term;
    return sum;
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_reduce_sum_square() {
  static const OpDef* const op = Make({
      .name = "ReduceSumSquare",
      .doc = "sum of x^2 over axes",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kNumeric}},
      .attributes = ReductionAttributes(),
      .infer = InferReduced,
      .reference = Reference,
      .expand = Expand,
      .rtol = 2e-5,
      .onnx = "ReduceSumSquare",
      .examples = {{{"f32[2, 3]"}, {{"axes", std::vector<int64_t>{1}}}},
                   {{"f32[5, 2, 17]"}, {{"axes", std::vector<int64_t>{0, -1}}, {"keep_dim", true}}},
                   {{"f16[3, S]"}, {{"axes", std::vector<int64_t>{-1}}}},
                   {{"f32[7, 3]"}, {{"axes", std::vector<int64_t>{0}}}},
                   {{"i16[3, 5]"}, {{"axes", std::vector<int64_t>{0, 1}}}}},
  });
  return *op;
}

}  // namespace quern::ir
