// ReduceLogSumExp: log sum e^x over axes. The largest element is subtracted from the exponents where it is finite: a
// line of -inf, or of nothing, gives -inf, one that has inf gives inf.

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
  const DType dtype = e.type(x).dtype;
  const Value largest = e.Reduced("max", x, axes);
  const Value finite = e.Add("Lt", {e.Add("Abs", {largest}), e.Scalar(INFINITY, dtype)});
  const Value shift = e.Add("Where", {finite, largest, e.Scalar(0, dtype)});
  const Value sum = e.Reduced("sum", e.Add("Exp", {e.Add("Sub", {x, shift})}), axes);
  const Value y = e.Add("Add", {e.Add("Log", {sum}), shift});
  return e.Finish({e.Sized(e.Stored(y, node.results[0].dtype), node.results[0].dims)});
}

Status Reference(RefContext& context) {
  ReduceFloats(context, [](std::span<const double> terms) {
    double largest = -INFINITY, sum = 0;
    for (const double term : terms) largest = std::max(largest, term);
    for (const double term : terms) sum += std::isnan(term) ? NAN : term == largest ? 1 : std::exp(term - largest);
    return sum == 0 ? -INFINITY : largest + std::log(sum);
  });
  return absl::OkStatus();
}

// Of what is added, and of e^x the rounding of x.
Status Magnitude(RefContext& context) {
  ReduceMagnitudes(context, [](std::span<const double> terms) {
    double most = 1;
    for (const double term : terms) most = std::max(most, std::fabs(term));
    return most;
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_reduce_log_sum_exp() {
  static const OpDef* const op = Make({
      .name = "ReduceLogSumExp",
      .doc = "log sum e^x over axes, with the largest element subtracted",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat}},
      .attributes = ReductionAttributes(),
      .infer = InferReduced,
      .reference = Reference,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Magnitude,
      .onnx = "ReduceLogSumExp",
      .examples = {{{"f32[2, 3]"}, {{"axes", std::vector<int64_t>{1}}}},
                   {{"f32[5, 2, 17]"}, {{"axes", std::vector<int64_t>{0, -1}}, {"keep_dim", true}}},
                   {{"f16[3, S]"}, {{"axes", std::vector<int64_t>{-1}}}},
                   {{"f32[7, 3]"}, {{"axes", std::vector<int64_t>{0}}}}},
  });
  return *op;
}

}  // namespace quern::ir
