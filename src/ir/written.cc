#include "ir/written.h"

#include <string_view>

#include "ir/op.h"

namespace quern::ir {
namespace {

// The text of an attribute, or null.
const std::string* TextOf(const Attributes& attributes, std::string_view name) {
  const AttrValue* value = attributes.Find(name);
  return value == nullptr ? nullptr : std::get_if<std::string>(value);
}

StatusOr<Value> AddLeaf(Graph& graph, WrittenNode& node) {
  if (node.results.size() != 1) return absl::InvalidArgumentError("expected one type for a leaf");
  const std::string_view op = node.op->name;
  if (op == "Constant")
    return graph.AddConstant(node.results[0], std::move(node.data).value_or(std::vector<uint8_t>()), node.origin);
  if (node.data) return absl::InvalidArgumentError("data of what is no Constant");
  const std::string* name = TextOf(node.attributes, "name");
  if (name == nullptr) return absl::InvalidArgumentError("expected a name for the leaf");
  return op == "Input" ? graph.AddInput(*name, node.results[0], node.origin)
                       : graph.AddParam(*name, node.results[0], node.origin);
}

StatusOr<Value> AddNode(Graph& graph, WrittenNode& node) {
  if (node.op->kind == OpKind::kLeaf) return AddLeaf(graph, node);
  if (node.data) return absl::InvalidArgumentError("data of what is no Constant");
  if (node.op->kind != OpKind::kRegion) {
    return graph.Add(*node.op, std::move(node.inputs), std::move(node.attributes), node.origin, std::move(node.bodies),
                     node.results);
  }
  const std::string* family = TextOf(node.attributes, "family");
  if (family == nullptr) return absl::InvalidArgumentError("expected a family for the Region");
  return graph.AddRegion(*family, std::move(node.inputs), std::move(node.bodies[0]), node.origin);
}

}  // namespace

Status AddWritten(Graph& graph, WrittenNode node) {
  QUERN_ASSIGN(const Value made, AddNode(graph, node));
  const std::vector<TensorType>& inferred = graph.node(made.node).results;
  if (inferred == node.results) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("expected the inferred type %s", inferred[0].ToString()));
}

}  // namespace quern::ir
