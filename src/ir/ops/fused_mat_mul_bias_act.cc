// FusedMatMulBiasAct: act(x w + b), by name. Expands to MatMul, Add and the activation; fusion makes them one region
// again.

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  Attributes mat_mul = {{"transpose_b", context.attributes.Bool("transpose_b")}};
  QUERN_ASSIGN(std::vector<TensorType> types,
               FindOp("MatMul")->infer({context.operands.first(2), mat_mul, context.symbols, context.constraints}));
  const std::string& act = context.attributes.String("act");
  if (!act.empty() &&
      (FindOp(act) == nullptr || FindOp(act)->kind != OpKind::kElementwise || FindOp(act)->operands.size() != 1)) {
    return absl::InvalidArgumentError(absl::StrFormat("FusedMatMulBiasAct: %s is no activation", act));
  }
  if (context.operands[2].dims != std::vector<Extent>{types[0].dims.back()}) {
    return absl::InvalidArgumentError(absl::StrFormat("FusedMatMulBiasAct: the bias is %s, [%s] expected",
                                                      context.operands[2].ToString(), types[0].dims.back().ToString()));
  }
  return types;
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  Value y = e.Add("MatMul", {inputs[0], inputs[1]}, {{"transpose_b", node.attributes.Bool("transpose_b")}});
  y = e.Add("Add", {y, inputs[2]});
  if (!node.attributes.String("act").empty()) y = e.Add(node.attributes.String("act"), {y});
  return e.Finish({y});
}

// The references of the parts, one after the other.
Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  auto run = [&](std::string_view op, std::vector<const RefTensor*> operands, Attributes attributes) {
    Node node = context.node;
    node.op = FindOp(op);
    node.attributes = std::move(attributes);
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
      .operands = {{.name = "x", .kind = OperandKind::kActivation, .own_dtype = true},
                   {.name = "w", .kind = OperandKind::kWeight, .own_dtype = true},
                   {.name = "b", .kind = OperandKind::kFloat, .own_dtype = true}},
      .attributes = {{.name = "act",
                      .kind = AttrKind::kString,
                      .default_value = std::string(),
                      .doc = "name of an elementwise op, or empty"},
                     {.name = "transpose_b", .kind = AttrKind::kBool, .default_value = false}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 2e-5,
      .atol = 2e-5,
  });
  return *op;
}

}  // namespace quern::ir
