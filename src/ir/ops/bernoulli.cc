// Bernoulli: true with the probability that p says: where (w >> 8) 2^-24 is below it (ir/philox.h). NaN is never true.

#include "ir/philox.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckRandomState(context, 1));
  return std::vector<TensorType>{{DType::kBool, context.operands[0].dims}, RandomStateType()};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const auto [unit, state] = RandomUnits(graph, e, inputs[1], node.results[0].dims, origin);
  const Value p = e.Wide(inputs[0]);
  if (!e.ok()) return e.Finish({});
  return e.Finish({e.Add("Lt", {e.Stored(unit, e.type(p).dtype), p}), state});
}

Status Reference(RefContext& context) {
  const RefTensor& p = *context.operands[0];
  const std::vector<uint32_t> words = ReferenceWords(*context.operands[1], p.elements(), context.results[1]);
  for (size_t i = 0; i < words.size(); ++i) context.results[0].data[i] = ReferenceUnit(words[i]) < p.data[i] ? 1 : 0;
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_bernoulli() {
  static const OpDef* const op = Make({
      .name = "Bernoulli",
      .doc = "true with the probability p, and the state behind the numbers that decide it",
      .kind = OpKind::kComposite,
      .operands = {{.name = "p", .kind = OperandKind::kFloat}, RandomStateOperand()},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .onnx = "Bernoulli",
      .examples = {{{"f32[3, 7]", "u32[6]"}}, {{"f32[S, 5]", "u32[6]"}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
