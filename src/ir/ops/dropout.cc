// Dropout: x / (1 - rate) where (w >> 8) 2^-24 is at least rate, else 0, whatever x holds there (ir/philox.h).

#include "ir/philox.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckRandomState(context, 1));
  const double rate = context.attributes.Float("rate");
  if (!(rate >= 0 && rate < 1)) return context.AttributeError("rate", "0 to below 1");
  return std::vector<TensorType>{context.operands[0], RandomStateType()};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const double rate = node.attributes.Float("rate");
  const auto [unit, state] = RandomUnits(graph, e, inputs[1], node.results[0].dims, origin);
  const Value x = e.Wide(inputs[0]);
  if (!e.ok()) return e.Finish({});
  const DType dtype = e.type(x).dtype;
  const Value kept = e.Add("Mul", {x, e.Scalar(1 / (1 - rate), dtype)});
  const Value dropped = e.Add("Lt", {unit, e.Scalar(rate, DType::kF32)});
  const Value y = e.Add("Where", {dropped, e.Scalar(0, dtype), kept});
  return e.Finish({e.Stored(y, node.results[0].dtype), state});
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  // The rate as kernels have it.
  const double rate = context.node.attributes.Float("rate"), below = static_cast<float>(rate);
  const std::vector<uint32_t> words = ReferenceWords(*context.operands[1], x.elements(), context.results[1]);
  for (size_t i = 0; i < words.size(); ++i)
    y.data[i] = ReferenceUnit(words[i]) < below ? 0 : RoundTo(y.dtype, x.data[i] / (1 - rate));
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_dropout() {
  static const OpDef* const op = Make({
      .name = "Dropout",
      .doc = "x / (1 - rate), or 0 with the probability rate; and the state behind the numbers that decide it",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat}, RandomStateOperand()},
      .attributes = {{.name = "rate", .kind = AttrKind::kFloat, .default_value = 0.5}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .onnx = "Dropout",
      .examples = {{{"f32[3, 7]", "u32[6]"}, {{"rate", 0.25}}}, {{"f16[S, 5]", "u32[6]"}}},
  });
  return *op;
}

}  // namespace quern::ir
