// RngNormal: normally distributed numbers, two of two words w0, w1 (Box and Muller; ir/philox.h):
//   u1 = ((w0 >> 8) + 1) 2^-24, u2 = (w1 >> 8) 2^-24; sqrt(-2 ln u1) cos 2 pi u2, then the same with sin

#include <cmath>
#include <numbers>

#include "ir/philox.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) { return InferRandom(context, DType::kF32); }

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent>& dims = node.results[0].dims;
  const RandomLanes words = RandomWords(graph, e, inputs[0], node.results[0].elements(), origin);
  const auto number = [&](double value) { return e.Scalar(value, DType::kF32); };
  std::array<Value, 4> made;
  for (int p : {0, 2}) {
    const Value u1 = e.Add("Add", {UnitOf(graph, e, words.lanes[p], origin), number(0x1p-24)});
    const Value u2 = UnitOf(graph, e, words.lanes[p + 1], origin);
    const Value radius = e.Add("Sqrt", {e.Add("Mul", {e.Add("Log", {u1}), number(-2)})});
    const Value angle = e.Add("Mul", {u2, number(2 * std::numbers::pi)});
    made[p] = e.Add("Mul", {radius, e.Add("Cos", {angle})});
    made[p + 1] = e.Add("Mul", {radius, e.Add("Sin", {angle})});
  }
  return e.Finish({Interleaved(e, made, dims), words.state});
}

// An angle is rounded before its cosine is taken: what is lost is relative to the radius.
Status Run(RefContext& context, bool bound) {
  RefTensor& y = context.results[0];
  const int64_t count = y.elements();
  const std::vector<uint32_t> words = ReferenceWords(*context.operands[0], count + count % 2, context.results[1]);
  for (int64_t i = 0; i < count; ++i) {
    const double u1 = ReferenceUnit(words[i - i % 2]) + 0x1p-24, u2 = ReferenceUnit(words[i - i % 2 + 1]);
    const double radius = std::sqrt(-2 * std::log(u1)), angle = 2 * std::numbers::pi * u2;
    y.data[i] = radius * (bound ? 1 : i % 2 == 0 ? std::cos(angle) : std::sin(angle));
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_rng_normal() {
  static const OpDef* const op = Make({
      .name = "RngNormal",
      .doc = "normally distributed random numbers, and the state behind them",
      .kind = OpKind::kComposite,
      .operands = {RandomStateOperand()},
      .attributes = {{.name = "shape", .kind = AttrKind::kExtents}},
      .infer = Infer,
      .reference = [](RefContext& c) { return Run(c, false); },
      .expand = Expand,
      .rtol = 3e-6,
      .magnitude = [](RefContext& c) { return Run(c, true); },
      .onnx = "RandomNormal",
      .examples = {{{"u32[6]"}, {{"shape", std::vector<Extent>{11}}}},
                   {{"u32[6]"}, {{"shape", std::vector<Extent>{3, Extent::Symbol("S")}}}}},
  });
  return *op;
}

}  // namespace quern::ir
