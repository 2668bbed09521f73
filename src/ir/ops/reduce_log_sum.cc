// ReduceLogSum: the logarithm of the sum over axes.

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
  const Value y = e.Add("Log", {e.Reduced("sum", x, axes)});
  return e.Finish({e.Sized(e.Stored(y, node.results[0].dtype), node.results[0].dims)});
}

Status Reference(RefContext& context) {
  ReduceFloats(context, [](std::span<const double> terms) {
    double sum = 0;
    for (const double term : terms) sum += term;
    return std::log(sum);
  });
  return absl::OkStatus();
}

// The sum is off by some of the sizes of its terms, its logarithm by as much of the sum.
Status Magnitude(RefContext& context) {
  ReduceMagnitudes(context, [](std::span<const double> terms) {
    double sum = 0, sizes = 0;
    for (const double term : terms) sum += term, sizes += std::fabs(term);
    return sizes == 0 ? 0 : sizes / std::fabs(sum) + std::fabs(std::log(std::fabs(sum)));
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_reduce_log_sum() {
  static const OpDef* const op = Make({
      .name = "ReduceLogSum",
      .doc = "logarithm of the sum over axes",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat}},
      .attributes = ReductionAttributes(),
      .infer = InferReduced,
      .reference = Reference,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Magnitude,
      .onnx = "ReduceLogSum",
      .sample_low = 0.25,
      .examples = {{{"f32[2, 3]"}, {{"axes", std::vector<int64_t>{1}}}},
                   {{"f32[5, 2, 17]"}, {{"axes", std::vector<int64_t>{0, -1}}, {"keep_dim", true}}},
                   {{"f16[3, S]"}, {{"axes", std::vector<int64_t>{-1}}}},
                   {{"f32[7, 3]"}, {{"axes", std::vector<int64_t>{0}}}}},
  });
  return *op;
}

}  // namespace quern::ir
