// RngBits: random words of Philox4x32-10, in order, and the state behind them (ir/philox.h).

#include "ir/philox.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) { return InferRandom(context, DType::kU32); }

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent>& dims = node.results[0].dims;
  RandomLanes words = RandomWords(graph, e, inputs[0], node.results[0].elements(), origin);
  for (Value& lane : words.lanes) lane = e.Stored(lane, DType::kU32);
  return e.Finish({Interleaved(e, words.lanes, dims), words.state});
}

Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  const std::vector<uint32_t> words = ReferenceWords(*context.operands[0], y.elements(), context.results[1]);
  for (size_t i = 0; i < words.size(); ++i) y.SetInteger(static_cast<int64_t>(i), words[i]);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_rng_bits() {
  static const OpDef* const op = Make({
      .name = "RngBits",
      .doc = "random words of Philox4x32-10 behind a state, and the state behind them",
      .kind = OpKind::kComposite,
      .operands = {RandomStateOperand()},
      .attributes = {{.name = "shape", .kind = AttrKind::kExtents}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .examples = {{{"u32[6]"}, {{"shape", std::vector<Extent>{7, 3}}}},
                   {{"u32[6]"}, {{"shape", std::vector<Extent>{Extent::Symbol("S"), 5}}}}},
  });
  return *op;
}

}  // namespace quern::ir
