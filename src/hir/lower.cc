// Lowering: HIR blocks to MIR nodes, in order. Every node of a block carries the block's label path as its origin.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "hir/block.h"

namespace quern::hir {
namespace {

constexpr const char* kPass = "lower";

// One MIR node as it would be in the graph, to be looked at before it is there.
StatusOr<ir::Node> Apart(ir::Graph& graph, const ir::OpDef& op, const std::vector<ir::Value>& inputs,
                         Attributes attributes, int origin) {
  std::vector<TensorType> types;
  for (const ir::Value& input : inputs) types.push_back(graph.type(input));
  ir::Node node;
  node.op = &op;
  QUERN_ASSIGN(node.results, ir::InferResults(op, types, attributes, graph.symbols, &graph.constraints));
  node.inputs = inputs;
  node.attributes = std::move(attributes);
  node.origin = origin;
  return node;
}

}  // namespace

LowerContext::LowerContext(ir::Graph& graph, const Node& node, std::vector<ir::Value> inputs, FusionPolicy policy,
                           LowerMemo& memo)
    : graph(graph),
      node(node),
      inputs(std::move(inputs)),
      policy(policy),
      memo(memo),
      origin_(graph.AddOrigin({node.label, kPass})) {}

int LowerContext::Part(std::string_view part) const {
  return part.empty() ? origin_ : graph.AddOrigin({absl::StrCat(node.label, "/", std::string(part)), kPass});
}

void LowerContext::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

ir::Value LowerContext::Take(StatusOr<ir::Value> value) {
  if (value.ok()) return *value;
  Fail(value.status());
  return {};
}

ir::Value LowerContext::Add(std::string_view op, std::vector<ir::Value> operands, Attributes attributes,
                            std::string_view part) {
  return Results(op, std::move(operands), std::move(attributes), part)[0];
}

std::vector<ir::Value> LowerContext::Results(std::string_view op, std::vector<ir::Value> operands,
                                             Attributes attributes, std::string_view part) {
  const auto add = [&]() -> StatusOr<std::vector<ir::Value>> {
    QUERN_RETURN_IF_ERROR(status_);
    const ir::OpDef* def = ir::FindOp(op);
    QUERN_CHECK(def != nullptr);
    const int origin = Part(part);
    if (!direct() && def->expand != nullptr) {
      const StatusOr<ir::Node> apart = Apart(graph, *def, operands, attributes, origin);
      if (!apart.ok()) return ir::WithOrigin(graph, origin, apart.status());
      if (ir::IsExpanded(*apart)) {  // an op with kernels is expanded only where it has none
        StatusOr<std::vector<ir::Value>> made = def->expand(graph, *apart, operands, origin);
        if (!made.ok()) return ir::WithOrigin(graph, origin, made.status());
        return made;
      }
    }
    QUERN_ASSIGN(const ir::Value first, graph.Add(*def, std::move(operands), std::move(attributes), origin));
    std::vector<ir::Value> results;
    for (int r = 0; r < static_cast<int>(graph.node(first.node).results.size()); ++r)
      results.push_back({first.node, r});
    return results;
  };
  StatusOr<std::vector<ir::Value>> results = add();
  if (results.ok()) return *std::move(results);
  Fail(results.status());
  return std::vector<ir::Value>(8);  // more results than any op of a block has, all invalid
}

ir::Value LowerContext::Zeros(const TensorType& type) {
  if (!status_.ok()) return {};
  const ir::Value zero =
      Take(graph.AddConstant({type.dtype, {}}, std::vector<uint8_t>(ScalarBytes(type.dtype)), origin_));
  return Add("Expand", {zero}, {{"shape", type.dims}});
}

ir::Value LowerContext::Reshape(ir::Value x, std::vector<Extent> shape, std::string_view part) {
  if (!status_.ok() || type(x).dims == shape) return x;
  return Add("Reshape", {x}, {{"shape", std::move(shape)}}, part);
}

ir::Value LowerContext::CastTo(DType dtype, ir::Value x, std::string_view part) {
  if (!status_.ok() || type(x).dtype == dtype) return x;
  return Add("Cast", {x}, {{"to", dtype}}, part);
}

std::vector<ir::Value> LowerContext::Block(std::string_view block, std::vector<ir::Value> operands,
                                           Attributes attributes, std::string_view label) {
  Node inner;
  inner.block = FindBlock(block);
  QUERN_CHECK(inner.block != nullptr);
  inner.attributes = std::move(attributes);
  inner.label = absl::StrCat(node.label, "/", std::string(label));
  auto lower = [&]() -> StatusOr<std::vector<ir::Value>> {
    QUERN_RETURN_IF_ERROR(status_);
    std::vector<TensorType> copies;  // the graph grows below, so its types cannot be pointed at
    for (const ir::Value& operand : operands) copies.push_back(operand.node < 0 ? TensorType{} : graph.type(operand));
    std::vector<const TensorType*> types;
    for (size_t i = 0; i < operands.size(); ++i) types.push_back(operands[i].node < 0 ? nullptr : &copies[i]);
    QUERN_RETURN_IF_ERROR(CheckNode(inner, types, graph.symbols));
    operands.resize(types.size());
    return LowerNode(graph, inner, operands, policy, memo);
  };
  StatusOr<std::vector<ir::Value>> results = lower();
  if (results.ok()) return *std::move(results);
  Fail(results.status());
  return std::vector<ir::Value>(8);  // more results than any block has, all invalid: callers index without looking
}

bool LowerContext::IsNothing(ir::Value value) const {
  if (value.node < 0) return true;
  const ir::Node& made_by = graph.node(value.node);
  if (made_by.data == nullptr || !IsFloat(made_by.results[0].dtype)) return false;
  return std::all_of(made_by.data->begin(), made_by.data->end(), [](uint8_t byte) { return byte == 0; });
}

StatusOr<std::vector<ir::Value>> LowerContext::Finish(std::vector<ir::Value> results) const {
  if (!status_.ok()) return status_;
  return results;
}

StatusOr<std::vector<ir::Value>> LowerNode(ir::Graph& graph, const Node& node, std::vector<ir::Value> inputs,
                                           FusionPolicy policy, LowerMemo& memo) {
  LowerContext context(graph, node, std::move(inputs), policy, memo);
  QUERN_ASSIGN(std::vector<ir::Value> results, node.block->lower(context));
  QUERN_CHECK(results.size() == node.results.size());
  for (size_t r = 0; r < results.size(); ++r) {
    if (graph.type(results[r]) == node.results[r]) continue;
    return absl::InternalError(absl::StrFormat("%s: result %u is %s after lowering, %s before (in %s)",
                                               node.block->name, r, graph.type(results[r]).ToString(),
                                               node.results[r].ToString(), node.label));
  }
  return results;
}

StatusOr<ir::Graph> Lower(const Module& module) {
  ir::Graph graph;
  graph.name = module.name;
  graph.symbols = module.symbols;
  const FusionPolicy policy = module.quantisation.empty() ? module.policy : FusionPolicy::kFusable;
  LowerMemo memo;
  std::vector<std::vector<ir::Value>> values;  // of each HIR node
  for (const Node& node : module.nodes()) {
    std::vector<ir::Value> inputs;
    for (const Value& input : node.inputs) {
      inputs.push_back(input.absent() ? ir::Value{} : values[input.node][input.result]);
    }
    QUERN_ASSIGN(values.emplace_back(), LowerNode(graph, node, std::move(inputs), policy, memo));
  }
  for (const Value& output : module.outputs) {
    if (output.node < 0 || output.node >= static_cast<int>(values.size()) || output.result < 0 ||
        output.result >= static_cast<int>(values[output.node].size())) {
      return ToStatus({DiagnosticCode::kUnknownOperand, module.name, "output", "",
                       absl::StrFormat("%%%d.%d", output.node, output.result), ""});
    }
    graph.outputs.push_back(values[output.node][output.result]);
  }
  graph.output_names = module.output_names;
  graph.donations = module.donations;
  graph.quantisation = module.quantisation;
  QUERN_RETURN_IF_ERROR(ir::Verify(graph));
  return graph;
}

StatusOr<ir::Graph> LowerForAutodiff(Module module) {
  module.policy = FusionPolicy::kFusable;
  return Lower(module);
}

}  // namespace quern::hir
