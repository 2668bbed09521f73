#include "ir/graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/diagnostic.h"
#include "ir/op.h"

namespace quern::ir {

Status WithOrigin(const Graph& graph, int origin, Status status) {
  if (status.ok() || origin < 0) return status;
  return WithProvenance(status, graph.origins()[origin].label);
}

StatusOr<Value> Graph::Add(const OpDef& op, std::vector<Value> inputs, Attributes attributes, int origin,
                           std::vector<std::shared_ptr<const Graph>> bodies, std::span<const TensorType> declared) {
  std::vector<TensorType> types;
  for (const Value& input : inputs) {
    if (input.node < 0 || input.node >= static_cast<int>(nodes_.size()) || input.result < 0 ||
        input.result >= static_cast<int>(nodes_[input.node].results.size())) {
      return WithOrigin(*this, origin,
                        ToStatus({DiagnosticCode::kUnknownOperand, op.name, OperandName(op, types.size()), "",
                                  absl::StrFormat("%%%d.%d", input.node, input.result), ""}));
    }
    types.push_back(type(input));
  }
  StatusOr<std::vector<TensorType>> results =
      InferResults(op, types, attributes, symbols, &constraints, bodies, declared);
  if (!results.ok()) return WithOrigin(*this, origin, results.status());
  nodes_.push_back(
      {&op, std::move(inputs), std::move(attributes), *std::move(results), origin, std::move(bodies), nullptr});
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

StatusOr<Value> Graph::Add(std::string_view op, std::vector<Value> inputs, Attributes attributes, int origin,
                           std::vector<std::shared_ptr<const Graph>> bodies) {
  const OpDef* def = FindOp(op);
  if (def == nullptr) return WithOrigin(*this, origin, UnknownOp(op));
  return Add(*def, std::move(inputs), std::move(attributes), origin, std::move(bodies));
}

namespace {

// Pairs of c64 are one dimension more.
Status CheckLeaf(const char* op, const std::string& name, const TensorType& type) {
  QUERN_RETURN_IF_ERROR(CheckExtents(type.dims));
  if (!IsComplex(type.dtype) || type.dims.size() < kMostDims) return absl::OkStatus();
  return ToStatus({DiagnosticCode::kUnsupported, op, name, absl::StrFormat("c64 of up to %u dimensions", kMostDims - 1),
                   type.ToString(), ""});
}

// Leaves carry their type themselves.
Node Leaf(const char* op, Attributes attributes, TensorType type, int origin) {
  Node node;
  node.op = FindOp(op);
  QUERN_CHECK(node.op != nullptr);
  node.attributes = std::move(attributes);
  node.results.push_back(std::move(type));
  node.origin = origin;
  return node;
}

}  // namespace

Status Graph::TakeName(const char* op, const std::string& name) {
  if (names_.insert(name).second) return absl::OkStatus();
  return ToStatus({DiagnosticCode::kDuplicateName, op, name, "", "", ""});
}

StatusOr<Value> Graph::AddInput(std::string name, TensorType type, int origin) {
  QUERN_RETURN_IF_ERROR(CheckLeaf("Input", name, type));
  QUERN_RETURN_IF_ERROR(TakeName("Input", name));
  nodes_.push_back(Leaf("Input", {{"name", name}}, std::move(type), origin));
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

StatusOr<Value> Graph::AddParam(std::string name, TensorType type, int origin) {
  QUERN_RETURN_IF_ERROR(CheckLeaf("Param", name, type));
  for (const Extent& dim : type.dims) {
    if (!dim.is_constant())
      return ToStatus({DiagnosticCode::kShapeMismatch, "Param", name, "constant extents", type.ToString(), ""});
  }
  QUERN_RETURN_IF_ERROR(TakeName("Param", name));
  nodes_.push_back(Leaf("Param", {{"name", name}}, std::move(type), origin));
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

StatusOr<Value> Graph::AddConstant(TensorType type, std::vector<uint8_t> data, int origin) {
  QUERN_RETURN_IF_ERROR(CheckLeaf("Constant", "data", type));
  const Extent elements = type.elements();
  if (IsBlock(type.dtype) || !elements.is_constant() ||
      elements.constant() * ScalarBytes(type.dtype) != static_cast<int64_t>(data.size())) {
    return ToStatus({DiagnosticCode::kShapeMismatch, "Constant", "data", absl::StrCat("that of ", type.ToString()),
                     absl::StrCat(data.size(), " bytes"), ""});
  }
  nodes_.push_back(Leaf("Constant", {}, std::move(type), origin));
  nodes_.back().data = std::make_shared<const std::vector<uint8_t>>(std::move(data));
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

StatusOr<Value> Graph::AddRegion(std::string family, std::vector<Value> inputs, std::shared_ptr<const Graph> body,
                                 int origin) {
  Node node;
  node.op = FindOp("Region");
  QUERN_CHECK(node.op != nullptr && body != nullptr);
  node.attributes.Set("family", std::move(family));
  node.inputs = std::move(inputs);
  for (const Value& output : body->outputs) node.results.push_back(body->type(output));
  node.origin = origin;
  node.bodies = {std::move(body)};
  nodes_.push_back(std::move(node));
  const Status status = VerifyRegion(*this, static_cast<int>(nodes_.size()) - 1);
  if (!status.ok()) {
    nodes_.pop_back();
    return WithOrigin(*this, origin, status);
  }
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

StatusOr<Value> Graph::AddCopy(const Node& node, std::vector<Value> inputs, int origin) {
  if (IsInput(node) || IsParam(node)) {
    QUERN_RETURN_IF_ERROR(TakeName(node.op->name, node.attributes.String("name")));
  }
  nodes_.push_back({node.op, std::move(inputs), node.attributes, node.results, origin, node.bodies, node.data});
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

int Graph::AddOrigin(Origin origin) {
  const auto [found, added] =
      origin_of_.try_emplace(absl::StrCat(origin.pass, "\n", origin.label), static_cast<int>(origins_.size()));
  if (added) origins_.push_back(std::move(origin));
  return found->second;
}

std::vector<std::vector<std::pair<int, int>>> Graph::Users() const {
  std::vector<std::vector<std::pair<int, int>>> users(nodes_.size());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    for (size_t i = 0; i < nodes_[n].inputs.size(); ++i) {
      users[nodes_[n].inputs[i].node].emplace_back(static_cast<int>(n), static_cast<int>(i));
    }
  }
  return users;
}

namespace {

std::vector<int> NodesOf(const Graph& graph, bool (*wanted)(const Node&)) {
  std::vector<int> found;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (wanted(graph.nodes()[n])) found.push_back(static_cast<int>(n));
  }
  return found;
}

void AddParams(const Graph& graph, std::unordered_set<std::string_view>& seen, std::vector<const Node*>& params) {
  for (const int n : graph.Params()) {
    if (seen.insert(graph.node(n).attributes.String("name")).second) params.push_back(&graph.node(n));
  }
  for (const Node& node : graph.nodes()) {
    for (const auto& body : node.bodies) AddParams(*body, seen, params);
  }
}

}  // namespace

std::vector<const Node*> AllParams(const Graph& graph) {
  std::unordered_set<std::string_view> seen;
  std::vector<const Node*> params;
  AddParams(graph, seen, params);
  return params;
}

std::vector<int> Graph::Inputs() const { return NodesOf(*this, IsInput); }
std::vector<int> Graph::Params() const { return NodesOf(*this, IsParam); }

}  // namespace quern::ir
