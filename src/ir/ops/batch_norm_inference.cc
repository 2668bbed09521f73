// BatchNormInference: by channel, which is dimension 1, (x - mean) gamma / sqrt(var + eps) + beta, with a mean and
// variance that are given.

#include <cmath>

#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckChannels(context, 1, 2));
  return std::vector<TensorType>{context.operands[0]};
}

// gamma / sqrt(var + eps) is one number a channel.
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const int rank = node.results[0].rank();
  const Value x = e.Wide(inputs[0]), variance = e.Wide(inputs[4]);
  const Value eps = e.Scalar(node.attributes.Float("eps"), graph.type(x).dtype);
  const Value scale = e.Add("Mul", {e.Wide(inputs[1]), e.Add("Rsqrt", {e.Add("Add", {variance, eps})})});
  const Value centred = e.Add("Sub", {x, ByChannel(e, inputs[3], rank)});
  const Value scaled = e.Add("Mul", {centred, ByChannel(e, scale, rank)});
  return e.Finish({e.Stored(e.Add("Add", {scaled, ByChannel(e, inputs[2], rank)}), node.results[0].dtype)});
}

// `combine` makes an element of x, gamma, beta, the mean and the deviation.
template <typename Combine>
Status Each(RefContext& context, const Combine& combine) {
  RefTensor& y = context.results[0];
  const double eps = context.node.attributes.Float("eps");
  std::vector<int64_t> index(y.dims.size());
  const int64_t elements = y.elements();
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    const auto of = [&](int operand) { return context.operands[operand]->data[index[1]]; };
    y.data[at] = combine(context.operands[0]->data[at], of(1), of(2), of(3), std::sqrt(of(4) + eps));
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_batch_norm_inference() {
  static const OpDef* const op = Make({
      .name = "BatchNormInference",
      .doc = "(x - mean) gamma / sqrt(var + eps) + beta by channel",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[N, C, ..]"},
                   {.name = "gamma", .kind = OperandKind::kFloat, .shape = "[C]"},
                   {.name = "beta", .kind = OperandKind::kFloat, .shape = "[C]"},
                   {.name = "mean", .kind = OperandKind::kFloat, .shape = "[C]"},
                   {.name = "var", .kind = OperandKind::kFloat, .shape = "[C]"}},
      .attributes = {{.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}},
      .infer = Infer,
      .reference =
          [](RefContext& c) {
            return Each(c, [&](double x, double gamma, double beta, double mean, double deviation) {
              return RoundTo(c.results[0].dtype, (x - mean) / deviation * gamma + beta);
            });
          },
      .expand = Expand,
      .rtol = 2e-6,
      .magnitude =
          [](RefContext& c) {
            return Each(c, [](double x, double gamma, double beta, double mean, double deviation) {
              return (std::fabs(x) + std::fabs(mean)) / deviation * std::fabs(gamma) + std::fabs(beta);
            });
          },
      .onnx = "BatchNormalization",
      .sample_low = 0.25,
      .examples = {{{"f32[2, 3, 5, 7]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"}},
                   {{"f32[S, 5]", "f32[5]", "f32[5]", "f32[5]", "f32[5]"}, {{"eps", 0.01}}},
                   {{"f16[2, 3, S]", "f16[3]", "f16[3]", "f16[3]", "f16[3]"}}},
  });
  return *op;
}

}  // namespace quern::ir
