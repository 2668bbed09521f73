#include "hir/module.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "hir/block.h"

namespace quern::hir {

std::string Module::Label(std::string_view label) const {
  std::string path;
  for (const std::string& scope : scopes_) absl::StrAppend(&path, scope, "/");
  return path + std::string(label);
}

StatusOr<std::vector<const TensorType*>> Module::OperandTypes(const Node& node) const {
  std::vector<const TensorType*> types;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value& input = node.inputs[i];
    if (input.absent()) {
      types.push_back(nullptr);
    } else if (input.node >= static_cast<int>(nodes_.size()) || input.result < 0 ||
               input.result >= static_cast<int>(nodes_[input.node].results.size())) {
      const bool named = i < node.block->operands.size();
      return ToStatus({DiagnosticCode::kUnknownOperand, node.op != nullptr ? node.op->name : node.block->name,
                       named ? node.block->operands[i].name : absl::StrCat("operand ", i), "",
                       absl::StrFormat("%%%d.%d", input.node, input.result), node.label});
    } else {
      types.push_back(&type(input));
    }
  }
  return types;
}

StatusOr<std::vector<Value>> Module::Append(Node node) {
  QUERN_ASSIGN(std::vector<const TensorType*> operands, OperandTypes(node));
  QUERN_RETURN_IF_ERROR(CheckNode(node, operands, symbols));
  node.inputs.resize(operands.size());
  nodes_.push_back(std::move(node));
  std::vector<Value> results;
  for (size_t r = 0; r < nodes_.back().results.size(); ++r) {
    results.push_back({static_cast<int>(nodes_.size()) - 1, static_cast<int>(r)});
  }
  return results;
}

StatusOr<std::vector<Value>> Module::Add(std::string_view block, std::vector<Value> inputs, Attributes attributes,
                                         std::string label) {
  Node node;
  node.block = FindBlock(block);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.label = Label(!label.empty() ? label : node.block != nullptr ? node.block->label : "");
  if (node.block == nullptr) return ToStatus({DiagnosticCode::kUnknownOp, std::string(block), "", "", "", node.label});
  return Append(std::move(node));
}

namespace {

// Leaves share one name space each, like the inputs and params of a graph.
Status CheckUnique(const Module& module, const Node& leaf) {
  for (const Node& node : module.nodes()) {
    if (node.block == leaf.block && node.attributes.String("name") == leaf.attributes.String("name")) {
      return ToStatus(
          {DiagnosticCode::kDuplicateName, leaf.block->name, leaf.attributes.String("name"), "", "", leaf.label});
    }
  }
  return absl::OkStatus();
}

Node Leaf(const char* block, Attributes attributes, TensorType type, std::string label) {
  Node node;
  node.block = FindBlock(block);
  QUERN_CHECK(node.block != nullptr);
  node.attributes = std::move(attributes);
  node.results.push_back(std::move(type));
  node.label = std::move(label);
  return node;
}

}  // namespace

StatusOr<Value> Module::AddInput(std::string name, TensorType type) {
  Node node = Leaf("Input", {{"name", name}}, std::move(type), Label(name));
  QUERN_RETURN_IF_ERROR(CheckUnique(*this, node));
  QUERN_ASSIGN(const std::vector<Value> results, Append(std::move(node)));
  return results[0];
}

StatusOr<Value> Module::AddParam(std::string name, TensorType type) {
  Node node = Leaf("Param", {{"name", name}}, std::move(type), Label(name));
  QUERN_RETURN_IF_ERROR(CheckUnique(*this, node));
  QUERN_ASSIGN(const std::vector<Value> results, Append(std::move(node)));
  return results[0];
}

StatusOr<Value> Module::AddConstant(TensorType type, std::vector<uint8_t> data, std::string label) {
  Node node = Leaf("Constant", {}, std::move(type), Label(label.empty() ? "constant" : label));
  node.data = std::make_shared<const std::vector<uint8_t>>(std::move(data));
  QUERN_ASSIGN(const std::vector<Value> results, Append(std::move(node)));
  return results[0];
}

StatusOr<std::vector<Value>> Module::AddMir(std::string_view op, std::vector<Value> inputs, Attributes attributes,
                                            std::string label) {
  Node node;
  node.block = FindBlock("Mir");
  node.op = ir::FindOp(op);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.label = Label(label.empty() ? node.block->label : label);
  if (node.op == nullptr || node.op->infer == nullptr) {
    return ToStatus({DiagnosticCode::kUnknownOp, std::string(op), "", "", "", node.label});
  }
  return Append(std::move(node));
}

StatusOr<std::vector<Value>> Module::AddRegion(std::string family, std::vector<Value> inputs,
                                               std::shared_ptr<const ir::Graph> body, std::string label) {
  Node node;
  node.block = FindBlock("Mir");
  node.op = ir::FindOp("Region");
  node.inputs = std::move(inputs);
  node.attributes.Set("family", std::move(family));
  node.body = std::move(body);
  node.label = Label(label.empty() ? node.block->label : label);
  return Append(std::move(node));
}

Status Module::Named(std::string_view scope, const std::function<Status()>& build) {
  scopes_.emplace_back(scope);
  Status status = build();
  scopes_.pop_back();
  return status;
}

}  // namespace quern::hir
