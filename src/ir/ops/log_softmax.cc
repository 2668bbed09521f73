// LogSoftmax over one axis: x - max - log(sum e^(x - max)). A line of -inf alone gives NaN.

#include <algorithm>
#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(AxisOf(context).status());
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<int64_t> axes = {node.attributes.Int("axis")};
  const Value x = e.Wide(inputs[0]);
  const Value shifted = e.Add("Sub", {x, e.Reduced("max", x, axes)});
  const Value sum = e.Reduced("sum", e.Add("Exp", {shifted}), axes);
  return e.Finish({e.Stored(e.Add("Sub", {shifted, e.Add("Log", {sum})}), node.results[0].dtype)});
}

// `put` gets the position of each element, x - max and log(sum) of its line.
template <typename Put>
void ForEachElement(RefContext& context, const Put& put) {
  const RefTensor& x = *context.operands[0];
  ForEachLine(x, context.node.attributes.Int("axis"), [&](const std::vector<int64_t>& at) {
    double largest = -INFINITY, sum = 0;
    for (const int64_t i : at) largest = std::max(largest, x.data[i]);
    for (const int64_t i : at) sum += std::exp(x.data[i] - largest);
    for (const int64_t i : at) put(i, x.data[i] - largest, std::log(sum));
  });
}

Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  ForEachElement(context,
                 [&](int64_t at, double shifted, double sum) { y.data[at] = RoundTo(y.dtype, shifted - sum); });
  return absl::OkStatus();
}

// Of what is subtracted, and the rounding of a sum near 1.
Status Magnitude(RefContext& context) {
  ForEachElement(context, [&](int64_t at, double shifted, double sum) {
    context.results[0].data[at] = std::fabs(shifted) + std::fabs(sum) + 1;
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_log_softmax() {
  static const OpDef* const op = Make({
      .name = "LogSoftmax",
      .doc = "x - log sum e^x over one axis",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "rank 1 or more"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 1e-5,
      .magnitude = Magnitude,
      .onnx = "LogSoftmax",
      .examples = {{{"f32[2, 3]"}},
                   {{"f32[17, 5]"}, {{"axis", int64_t{0}}}},
                   {{"f16[3, S]"}},
                   {{"f64[3, 1, 7]"}, {{"axis", int64_t{-2}}}}},
  });
  return *op;
}

}  // namespace quern::ir
