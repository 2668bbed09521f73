// FusedMatMulBiasAct: act(x w + b), by name. Expands to MatMul, Add and the activation; fusion makes them one region
// again.

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  // The rules of MatMul, in the words of this op.
  QUERN_ASSIGN(std::vector<TensorType> types,
               FindOp("MatMul")->infer(
                   {context.op, context.operands.first(2), context.attributes, context.symbols, context.constraints}));
  const std::string& act = context.attributes.String("act");
  if (!act.empty() && !IsActivation(act)) return context.AttributeError("act", "an elementwise op of one operand");
  const std::vector<Extent> bias = {types[0].dims.back()};
  if (!context.Equal(context.operands[2].dims, bias)) return context.ShapeError(2, ToString(bias));
  if (context.operands[2].dtype != types[0].dtype) return context.DTypeError(2, std::string(Name(types[0].dtype)));
  return types;
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  Value y = e.Add("MatMul", {inputs[0], inputs[1]}, {{"transpose_b", node.attributes.Bool("transpose_b")}});
  y = e.Add("Add", {y, inputs[2]});
  if (!node.attributes.String("act").empty()) y = e.Add(node.attributes.String("act"), {y});
  return e.Finish({y});
}

// The magnitude of x w, and the bias: an activation makes errors little larger.
Status Magnitude(RefContext& context) {
  QUERN_RETURN_IF_ERROR(FindOp("MatMul")->magnitude(context));
  std::vector<double>& sizes = context.results[0].data;
  const std::vector<double>& bias = context.operands[2]->data;
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] += std::fabs(bias[i % bias.size()]);
  return absl::OkStatus();
}

// The references of the parts, one after the other.
Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  auto run = [&](std::string_view op, std::vector<const RefTensor*> operands, Attributes attributes) {
    Node node = context.node;
    node.op = FindOp(op);
    node.attributes = std::move(attributes);
    QUERN_RETURN_IF_ERROR(CheckAttributes(node.op->name, node.op->attributes, node.attributes, /*fill_defaults=*/true));
    std::vector<RefTensor> results = {{y.dtype, y.dims, std::vector<double>(y.data.size())}};
    RefContext part{node, operands, context.binding, results};
    QUERN_RETURN_IF_ERROR(node.op->reference(part));
    y = std::move(results[0]);
    return absl::OkStatus();
  };
  QUERN_RETURN_IF_ERROR(run("MatMul", {context.operands[0], context.operands[1]},
                            {{"transpose_b", context.node.attributes.Bool("transpose_b")}}));
  const RefTensor product = y;
  QUERN_RETURN_IF_ERROR(run("Add", {&product, context.operands[2]}, {}));
  const std::string& act = context.node.attributes.String("act");
  if (act.empty()) return absl::OkStatus();
  const RefTensor sum = y;
  return run(act, {&sum}, {});
}

}  // namespace

const OpDef& Op_fused_mat_mul_bias_act() {
  static const OpDef* const op = Make({
      .name = "FusedMatMulBiasAct",
      .doc = "act(x w + b)",
      .kind = OpKind::kComposite,
      .operands =
          {{.name = "x", .kind = OperandKind::kActivation, .shape = "[.., M, K]", .own_dtype = true},
           {.name = "w", .kind = OperandKind::kWeight, .shape = "[.., K, N], transposed [.., N, K]", .own_dtype = true},
           {.name = "b", .kind = OperandKind::kFloat, .shape = "[N]", .own_dtype = true}},
      .attributes = {{.name = "act",
                      .kind = AttrKind::kString,
                      .default_value = std::string(),
                      .doc = "name of an elementwise op, or empty"},
                     {.name = "transpose_b", .kind = AttrKind::kBool, .default_value = false}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 4e-6,
      .magnitude = Magnitude,
      .examples = {{{"f32[2, 3]", "f32[3, 5]", "f32[5]"}}},
  });
  return *op;
}

}  // namespace quern::ir
