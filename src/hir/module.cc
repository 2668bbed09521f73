#include "hir/module.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/nearest.h"
#include "hir/block.h"

namespace quern::hir {

std::string Module::Label(std::string_view label) const {
  std::string path;
  for (const std::string& scope : scopes_) absl::StrAppend(&path, scope, "/");
  return absl::StrCat(path, label.empty() ? absl::StrCat("%", nodes_.size()) : std::string(label));
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
                       node.op != nullptr ? ir::OperandName(*node.op, i)
                       : named            ? node.block->operands[i].name
                                          : absl::StrCat("operand ", i),
                       "", absl::StrFormat("%%%d.%d", input.node, input.result), node.label});
    } else {
      types.push_back(&type(input));
    }
  }
  return types;
}

Status Module::CheckStorage(const Node& node) const {
  const size_t declared = node.op != nullptr ? node.op->operands.size() : node.block->operands.size();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value& input = node.inputs[i];
    if (input.absent() || !IsBlock(type(input).dtype) || declared == 0) continue;
    const bool rows = IsParam(nodes_[input.node]);  // else Quantize made it
    const size_t which = std::min(i, declared - 1);
    const ir::OperandKind kind = node.op != nullptr ? node.op->operands[which].kind : node.block->operands[which].kind;
    if (rows == ir::TakesRows(kind) || !ir::Accepts(kind, type(input).dtype)) continue;
    return ToStatus({DiagnosticCode::kUnsupported, node.op != nullptr ? node.op->name : node.block->name,
                     node.op != nullptr ? ir::OperandName(*node.op, i) : node.block->operands[which].name,
                     ir::Phrase(kind), absl::StrCat(type(input).ToString(), rows ? ", a Param" : ", quantised here"),
                     node.label});
  }
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Module::Append(Node node) {
  QUERN_ASSIGN(std::vector<const TensorType*> operands, OperandTypes(node));
  QUERN_RETURN_IF_ERROR(CheckStorage(node));
  QUERN_RETURN_IF_ERROR(CheckNode(node, operands, symbols));
  node.inputs.resize(operands.size());
  const std::string_view block = node.block->name;
  if (block == "Input" || block == "Param")
    leaves_.emplace(node.attributes.String("name"), static_cast<int>(nodes_.size()));
  nodes_.push_back(std::move(node));
  std::vector<Value> results;
  for (size_t r = 0; r < nodes_.back().results.size(); ++r) {
    results.push_back({static_cast<int>(nodes_.size()) - 1, static_cast<int>(r)});
  }
  return results;
}

namespace {

std::string NearestBlock(std::string_view name) {
  std::vector<std::string_view> names;
  for (const BlockDef* block : Blocks()) {
    if (block->needs == nullptr) names.emplace_back(block->name);
  }
  return Nearest(name, names);
}

std::string DefaultLabel(const BlockDef& block, const std::vector<Value>& inputs, const Attributes& attributes) {
  const bool carried = inputs.size() == block.operands.size() && !inputs.empty() && !inputs.back().absent();
  const std::string label = carried && block.carry_label != nullptr ? block.carry_label : block.label;
  const auto* named = block.label_attribute == nullptr ? nullptr : attributes.Find(block.label_attribute);
  const auto* value = named == nullptr ? nullptr : std::get_if<std::string>(named);
  return value == nullptr ? label : absl::StrCat(label, "(", *value, ")");
}

}  // namespace

StatusOr<std::vector<Value>> Module::Add(std::string_view block, std::vector<Value> inputs, Attributes attributes,
                                         std::string label) {
  Node node;
  node.block = FindBlock(block);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  if (label.empty() && node.block != nullptr) label = DefaultLabel(*node.block, node.inputs, node.attributes);
  node.label = Label(label);
  if (node.block == nullptr) {
    const std::string meant =
        ir::FindOp(block) != nullptr ? absl::StrCat("the op ", std::string(block)) : NearestBlock(block);
    return ToStatus({DiagnosticCode::kUnknownOp, std::string(block), "", "", "", node.label, meant});
  }
  if (node.block->needs != nullptr) {
    return ToStatus({DiagnosticCode::kUnsupported, node.block->name, "", "",
                     absl::StrCat("adding one by name, without its ", node.block->needs, ","), node.label});
  }
  return Append(std::move(node));
}

Status Module::CheckUnique(const Node& leaf) const {
  const std::string& name = leaf.attributes.String("name");
  if (!leaves_.contains(name)) return absl::OkStatus();
  return ToStatus({DiagnosticCode::kDuplicateName, leaf.block->name, name, "", "", leaf.label});
}

namespace {

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
  QUERN_RETURN_IF_ERROR(ir::CheckExtents(type.dims));
  Node node = Leaf("Input", {{"name", name}}, std::move(type), Label(name));
  QUERN_RETURN_IF_ERROR(CheckUnique(node));
  QUERN_ASSIGN(const std::vector<Value> results, Append(std::move(node)));
  return results[0];
}

StatusOr<Value> Module::AddParam(std::string name, TensorType type) {
  QUERN_RETURN_IF_ERROR(ir::CheckExtents(type.dims));
  Node node = Leaf("Param", {{"name", name}}, std::move(type), Label(name));
  QUERN_RETURN_IF_ERROR(CheckUnique(node));
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
                                            std::string label, std::vector<std::shared_ptr<const ir::Graph>> bodies,
                                            std::vector<TensorType> declared) {
  Node node;
  node.block = FindBlock("Mir");
  node.op = ir::FindOp(op);
  node.bodies = std::move(bodies);
  node.results = std::move(declared);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.label = Label(label);
  if (node.op == nullptr) {
    const std::string meant =
        FindBlock(op) != nullptr ? absl::StrCat("the block ", std::string(op)) : ir::NearestOp(op);
    return ToStatus({DiagnosticCode::kUnknownOp, std::string(op), "", "", "", node.label, meant});
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
  node.bodies = {std::move(body)};
  node.label = Label(label);
  return Append(std::move(node));
}

Status Module::CheckWritten(const Node& node) const {
  const std::string_view block = node.block->name;
  const auto wrong = [&](const char* what) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %s", std::string(block), what));
  };
  if ((block == "Constant") != (node.data != nullptr)) return wrong("a Constant has data, and nothing else has");
  if (node.op != nullptr && node.op->kind == ir::OpKind::kLeaf) return wrong("a leaf is a block");
  for (const TensorType& type : node.results) QUERN_RETURN_IF_ERROR(ir::CheckExtents(type.dims));
  if (node.op == nullptr && node.block->needs != nullptr && node.results.size() != 1) return wrong("one type expected");
  const bool region = node.op != nullptr && node.op->kind == ir::OpKind::kRegion;
  if (block != "Input" && block != "Param" && !region) return absl::OkStatus();
  const ir::AttrValue* const name = node.attributes.Find(region ? "family" : "name");
  if (name == nullptr || !std::holds_alternative<std::string>(*name))
    return wrong(region ? "expected a family" : "expected a name");
  return region ? absl::OkStatus() : CheckUnique(node);
}

Status Module::AddWritten(Node node) {
  QUERN_RETURN_IF_ERROR(CheckWritten(node));
  if (node.label.empty()) {
    const bool named = node.block->needs != nullptr && node.op == nullptr && node.data == nullptr;
    node.label =
        Label(named ? node.attributes.String("name") : DefaultLabel(*node.block, node.inputs, node.attributes));
  }
  const std::vector<TensorType> declared = node.results;
  QUERN_ASSIGN(const std::vector<Value> results, Append(std::move(node)));
  const std::vector<TensorType> inferred = nodes_.back().results;
  if (inferred == declared) return absl::OkStatus();
  nodes_.pop_back();
  return absl::InvalidArgumentError(
      absl::StrFormat("expected the inferred type %s", inferred.empty() ? "of no result" : inferred[0].ToString()));
}

StatusOr<std::vector<Value>> Module::AddCopy(Node node) {
  node.label = Label(node.label);
  return Append(std::move(node));
}

size_t Module::OpenScope(std::string name) {
  scopes_.push_back(std::move(name));
  return scopes_.size();
}

void Module::CloseScope(size_t scope) {
  if (scope > 0 && scope <= scopes_.size()) scopes_.resize(scope - 1);
}

Status Module::Named(std::string_view scope, const std::function<Status()>& build) {
  const size_t nodes = nodes_.size();
  SymbolRanges old_symbols = symbols;
  std::vector<Value> old_outputs = outputs;
  std::vector<std::string> old_output_names = output_names;
  std::vector<ir::Donation> old_donations = donations;
  ir::QuantisationMap old_quantisation = quantisation;
  const size_t opened = OpenScope(std::string(scope));
  Status status = build();
  CloseScope(opened);
  if (status.ok()) return status;
  nodes_.erase(nodes_.begin() + static_cast<int64_t>(nodes), nodes_.end());
  std::erase_if(leaves_, [&](const auto& leaf) { return leaf.second >= static_cast<int>(nodes); });
  symbols = std::move(old_symbols);
  outputs = std::move(old_outputs);
  output_names = std::move(old_output_names);
  donations = std::move(old_donations);
  quantisation = std::move(old_quantisation);
  return status;
}

}  // namespace quern::hir
