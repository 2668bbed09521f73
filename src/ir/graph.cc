#include "ir/graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "ir/op.h"

namespace quern::ir {
namespace {

constexpr const char* kAttrKindNames[] = {"bool", "int", "float", "string", "dtype", "list of ints", "list of extents"};

}  // namespace

bool Accepts(OperandKind kind, DType dtype) {
  switch (kind) {
    case OperandKind::kAny: return true;
    case OperandKind::kNumeric: return IsFloat(dtype) || IsInteger(dtype);
    case OperandKind::kFloat: return IsFloat(dtype);
    case OperandKind::kInteger: return IsInteger(dtype);
    case OperandKind::kIndex: return dtype == DType::kI32 || dtype == DType::kI64;
    case OperandKind::kBool: return dtype == DType::kBool;
    case OperandKind::kIntegerOrBool: return IsInteger(dtype) || dtype == DType::kBool;
    case OperandKind::kWeight: return IsFloat(dtype) || IsBlock(dtype);
    case OperandKind::kActivation: return IsFloat(dtype) || dtype == DType::kQ8_0 || dtype == DType::kQ8_K;
  }
  QUERN_CHECK(false);
}

Status CheckOperands(const OpDef& op, std::span<const TensorType> operands) {
  size_t least = 0;
  bool variadic = false;
  for (const OperandDef& def : op.operands) {
    if (!def.optional) ++least;
    variadic |= def.variadic;
  }
  const size_t most = variadic ? SIZE_MAX : op.operands.size();
  if (operands.size() < least || operands.size() > most) {
    return absl::InvalidArgumentError(absl::StrFormat("%s takes %s%u operands, got %u", op.name,
                                                      most == least ? "" : "at least ", least, operands.size()));
  }
  std::optional<DType> shared;
  for (size_t i = 0; i < operands.size(); ++i) {
    const OperandDef& def = op.operands[std::min(i, op.operands.size() - 1)];
    if (!Accepts(def.kind, operands[i].dtype)) {
      return absl::InvalidArgumentError(absl::StrFormat("%s does not take %s for operand %u (%s)", op.name,
                                                        std::string(Name(operands[i].dtype)), i, def.name));
    }
    if (def.own_dtype) continue;
    if (shared && *shared != operands[i].dtype) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: operand %u (%s) is %s, %s expected", op.name, i, def.name,
                                                        std::string(Name(operands[i].dtype)),
                                                        std::string(Name(*shared))));
    }
    shared = operands[i].dtype;
  }
  return absl::OkStatus();
}

Status CheckAttributes(const OpDef& op, Attributes& attributes, bool fill_defaults) {
  for (const AttrDef& def : op.attributes) {
    const AttrValue* value = attributes.Find(def.name);
    if (value == nullptr) {
      if (!def.default_value || !fill_defaults) {
        return absl::InvalidArgumentError(absl::StrFormat("%s needs the attribute %s", op.name, def.name));
      }
      attributes.Set(def.name, *def.default_value);
      continue;
    }
    if (value->index() != static_cast<size_t>(def.kind)) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: attribute %s is a %s, %s expected", op.name, def.name,
                                                        kAttrKindNames[value->index()],
                                                        kAttrKindNames[static_cast<size_t>(def.kind)]));
    }
    if (!def.choices.empty()) {
      const std::string& choice = std::get<std::string>(*value);
      if (std::find(def.choices.begin(), def.choices.end(), choice) == def.choices.end()) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s: attribute %s cannot be \"%s\"", op.name, def.name, choice));
      }
    }
  }
  for (const auto& [name, value] : attributes.values()) {
    const bool known =
        std::any_of(op.attributes.begin(), op.attributes.end(), [&](const AttrDef& d) { return name == d.name; });
    if (!known) return absl::InvalidArgumentError(absl::StrFormat("%s has no attribute %s", op.name, name));
  }
  return absl::OkStatus();
}

Status WithOrigin(const Graph& graph, int origin, Status status) {
  if (status.ok() || origin < 0 || graph.origins()[origin].label.empty()) return status;
  return Status(status.code(),
                absl::StrFormat("%s (in %s)", std::string(status.message()), graph.origins()[origin].label));
}

StatusOr<Value> Graph::Add(const OpDef& op, std::vector<Value> inputs, Attributes attributes, int origin) {
  std::vector<TensorType> types;
  for (const Value& input : inputs) {
    if (input.node < 0 || input.node >= static_cast<int>(nodes_.size()) || input.result < 0 ||
        input.result >= static_cast<int>(nodes_[input.node].results.size())) {
      return WithOrigin(*this, origin,
                        absl::InvalidArgumentError(
                            absl::StrFormat("%s: unknown operand %%%d.%d", op.name, input.node, input.result)));
    }
    types.push_back(type(input));
  }
  auto infer = [&]() -> StatusOr<std::vector<TensorType>> {
    QUERN_RETURN_IF_ERROR(CheckOperands(op, types));
    QUERN_RETURN_IF_ERROR(CheckAttributes(op, attributes, /*fill_defaults=*/true));
    return op.infer({types, attributes, symbols, &constraints});
  };
  StatusOr<std::vector<TensorType>> results = infer();
  if (!results.ok()) return WithOrigin(*this, origin, results.status());
  nodes_.push_back({&op, std::move(inputs), std::move(attributes), *std::move(results), origin, nullptr, nullptr});
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

StatusOr<Value> Graph::Add(std::string_view op, std::vector<Value> inputs, Attributes attributes, int origin) {
  const OpDef* def = FindOp(op);
  if (def == nullptr) return absl::InvalidArgumentError(absl::StrFormat("there is no op %s", std::string(op)));
  return Add(*def, std::move(inputs), std::move(attributes), origin);
}

namespace {

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

bool Graph::TakeName(const char* op, const std::string& name) {
  return names_.insert(absl::StrCat(op, " ", name)).second;
}

StatusOr<Value> Graph::AddInput(std::string name, TensorType type, int origin) {
  if (!TakeName("Input", name))
    return absl::InvalidArgumentError(absl::StrFormat("there are two inputs called %s", name));
  nodes_.push_back(Leaf("Input", {{"name", name}}, std::move(type), origin));
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

StatusOr<Value> Graph::AddParam(std::string name, TensorType type, int origin) {
  for (const Extent& dim : type.dims) {
    if (!dim.is_constant()) {
      return absl::InvalidArgumentError(absl::StrFormat("param %s has a symbolic extent: %s", name, type.ToString()));
    }
  }
  if (!TakeName("Param", name))
    return absl::InvalidArgumentError(absl::StrFormat("there are two params called %s", name));
  nodes_.push_back(Leaf("Param", {{"name", name}}, std::move(type), origin));
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

StatusOr<Value> Graph::AddConstant(TensorType type, std::vector<uint8_t> data, int origin) {
  const Extent elements = type.elements();
  if (IsBlock(type.dtype) || !elements.is_constant() ||
      elements.constant() * ScalarBytes(type.dtype) != static_cast<int64_t>(data.size())) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a constant of type %s does not have %u bytes", type.ToString(), data.size()));
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
  node.body = std::move(body);
  nodes_.push_back(std::move(node));
  const Status status = VerifyRegion(*this, static_cast<int>(nodes_.size()) - 1);
  if (!status.ok()) {
    nodes_.pop_back();
    return WithOrigin(*this, origin, status);
  }
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

StatusOr<Value> Graph::AddCopy(const Node& node, std::vector<Value> inputs, int origin) {
  for (const char* leaf : {"Input", "Param"}) {
    if (std::string_view(node.op->name) != leaf || TakeName(leaf, node.attributes.String("name"))) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("there are two leaves called %s", node.attributes.String("name")));
  }
  nodes_.push_back({node.op, std::move(inputs), node.attributes, node.results, origin, node.body, node.data});
  return Value{static_cast<int>(nodes_.size()) - 1, 0};
}

int Graph::AddOrigin(Origin origin) {
  const auto it = std::find(origins_.begin(), origins_.end(), origin);
  if (it != origins_.end()) return static_cast<int>(it - origins_.begin());
  origins_.push_back(std::move(origin));
  return static_cast<int>(origins_.size()) - 1;
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

std::vector<int> NodesOf(const Graph& graph, std::string_view op) {
  std::vector<int> found;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (graph.nodes()[n].op->name == op) found.push_back(static_cast<int>(n));
  }
  return found;
}

}  // namespace

std::vector<int> Graph::Inputs() const { return NodesOf(*this, "Input"); }
std::vector<int> Graph::Params() const { return NodesOf(*this, "Param"); }

}  // namespace quern::ir
