// WrapGraph: an existing MIR graph as a module of Mir blocks, so that everything that takes HIR takes MIR too.

#include "absl/strings/str_cat.h"
#include "hir/block.h"
#include "ir/value_names.h"

namespace quern::hir {

StatusOr<Module> WrapGraph(const ir::Graph& graph) {
  QUERN_RETURN_IF_ERROR(ir::CheckStorage(graph));
  Module module;
  module.name = graph.name;
  module.symbols = graph.symbols;
  std::vector<std::vector<Value>> values;
  for (const ir::Node& node : graph.nodes()) {
    std::vector<Value> inputs;
    for (const ir::Value& input : node.inputs) inputs.push_back(values[input.node][input.result]);
    const std::string label = node.origin >= 0 ? graph.origins()[node.origin].label : "";
    const std::string_view op = node.op->name;
    auto leaf = [&]() -> StatusOr<Value> {
      if (op == "Input") return module.AddInput(node.attributes.String("name"), node.results[0]);
      if (op == "Param") return module.AddParam(node.attributes.String("name"), node.results[0]);
      return module.AddConstant(node.results[0], *node.data, label);
    };
    if (node.op->kind == ir::OpKind::kLeaf) {
      QUERN_ASSIGN(const Value value, leaf());
      values.push_back({value});
    } else if (node.op->kind == ir::OpKind::kRegion) {
      QUERN_ASSIGN(values.emplace_back(),
                   module.AddRegion(node.attributes.String("family"), std::move(inputs), node.bodies[0], label));
    } else {
      QUERN_ASSIGN(values.emplace_back(),
                   module.AddMir(op, std::move(inputs), node.attributes, label, node.bodies, node.results));
    }
  }
  for (const ir::Value& output : graph.outputs) module.outputs.push_back(values[output.node][output.result]);
  module.output_names = graph.output_names;
  module.donations = graph.donations;
  if (graph.quantisation.empty()) return module;
  // By value: a Constant without a label has one now.
  QUERN_ASSIGN(const ir::Graph lowered, Lower(module));
  module.quantisation = ir::MapOf(lowered, ir::SchemesOf(graph));
  return module;
}

}  // namespace quern::hir
