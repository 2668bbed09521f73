// RngUniform: numbers evenly between low and high: word w gives low + (high - low) (w >> 8) 2^-24 (ir/philox.h).

#include "ir/philox.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) { return InferRandom(context, DType::kF32); }

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const double low = node.attributes.Float("low"), high = node.attributes.Float("high");
  const auto [unit, state] = RandomUnits(graph, e, inputs[0], node.results[0].dims, origin);
  const Value scaled = e.Add("Mul", {unit, e.Scalar(high - low, DType::kF32)});
  return e.Finish({e.Add("Add", {scaled, e.Scalar(low, DType::kF32)}), state});
}

Status Run(RefContext& context, bool bound) {
  const double low = context.node.attributes.Float("low"), high = context.node.attributes.Float("high");
  RefTensor& y = context.results[0];
  const std::vector<uint32_t> words = ReferenceWords(*context.operands[0], y.elements(), context.results[1]);
  for (size_t i = 0; i < words.size(); ++i) {
    const double step = (high - low) * ReferenceUnit(words[i]);
    y.data[i] = bound ? std::abs(low) + std::abs(step) : low + step;
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_rng_uniform() {
  static const OpDef* const op = Make({
      .name = "RngUniform",
      .doc = "random numbers evenly between low and high, and the state behind them",
      .kind = OpKind::kComposite,
      .operands = {RandomStateOperand()},
      .attributes = {{.name = "shape", .kind = AttrKind::kExtents},
                     {.name = "low", .kind = AttrKind::kFloat, .default_value = 0.0},
                     {.name = "high", .kind = AttrKind::kFloat, .default_value = 1.0}},
      .infer = Infer,
      .reference = [](RefContext& c) { return Run(c, false); },
      .expand = Expand,
      .magnitude = [](RefContext& c) { return Run(c, true); },
      .onnx = "RandomUniform",
      .examples = {{{"u32[6]"}, {{"shape", std::vector<Extent>{11}}}},
                   {{"u32[6]"}, {{"shape", std::vector<Extent>{3, Extent::Symbol("S")}}, {"low", -1.0}}}},
  });
  return *op;
}

}  // namespace quern::ir
