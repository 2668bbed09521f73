// FusedSwiGLU: up * silu(gate) of the two halves of the last axis; gate_first says which half is which.

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  const std::optional<Extent> half = result.rank() < 1 ? std::nullopt : result.dims.back().DividedBy(Extent(2));
  if (!half) return context.ShapeError(0, "[.., 2 N]");
  result.dims.back() = *half;
  if (const std::string& to = context.attributes.String("cast_to"); !to.empty()) result.dtype = *DTypeFromName(to);
  return std::vector<TensorType>{std::move(result)};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Extent half = node.results[0].dims.back();
  auto part = [&](const Extent& start) {
    return e.Wide(
        e.Add("Narrow", {inputs[0]},
              {{"axis", int64_t{-1}}, {"start", std::vector<Extent>{start}}, {"length", std::vector<Extent>{half}}}));
  };
  const bool gate_first = node.attributes.Bool("gate_first");
  const Value up = part(gate_first ? half : Extent(0)), gate = part(gate_first ? Extent(0) : half);
  return e.Finish({e.Stored(e.Add("Mul", {up, e.Add("Silu", {gate})}), node.results[0].dtype)});
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const int64_t half = y.dims.back();
  const bool gate_first = context.node.attributes.Bool("gate_first");
  for (size_t i = 0; i < y.data.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / half, c = static_cast<int64_t>(i) % half;
    const double first = x.data[row * 2 * half + c], second = x.data[row * 2 * half + half + c];
    const double gate = gate_first ? first : second, up = gate_first ? second : first;
    y.data[i] = RoundTo(y.dtype, up * gate / (1 + std::exp(-gate)));
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_fused_swi_glu() {
  static const OpDef* const op = Make({
      .name = "FusedSwiGLU",
      .doc = "up * silu(gate) of the two halves of the last axis",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[.., 2 N]"}},
      .attributes = {{.name = "gate_first", .kind = AttrKind::kBool, .default_value = false},
                     {.name = "cast_to",
                      .kind = AttrKind::kString,
                      .default_value = std::string(),
                      .doc = "dtype of the result; empty: that of x",
                      .choices = {"", "f32", "f16", "bf16", "f64"}}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 4e-6,
      .examples = {{{"f32[2, 6]"}},
                   {{"f16[S, 22]"}, {{"gate_first", true}, {"cast_to", std::string("f32")}}},
                   {{"f32[3, 2 * S]"}, {{"cast_to", std::string("bf16")}}}},
  });
  return *op;
}

}  // namespace quern::ir
