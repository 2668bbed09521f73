#include "ir/control.h"

#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"

namespace quern::ir {

Status OtherType(const OpDef& op, std::string what, const TensorType& got, const TensorType& expected) {
  const DiagnosticCode code =
      got.dtype != expected.dtype ? DiagnosticCode::kDTypeMismatch : DiagnosticCode::kShapeMismatch;
  return ToStatus({code, op.name, std::move(what), expected.ToString(), got.ToString(), ""});
}

Status CheckBodyInputs(const OpDef& op, const char* name, const Graph& body, std::span<const TensorType> types) {
  const std::vector<int> inputs = body.Inputs();
  if (inputs.size() != types.size()) {
    return ToStatus({DiagnosticCode::kInputCount, absl::StrCat(op.name, ": ", name), "", absl::StrCat(types.size()),
                     absl::StrCat(inputs.size()), ""});
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Node& input = body.node(inputs[i]);
    if (input.results[0] == types[i]) continue;
    return OtherType(op, absl::StrFormat("input %u (%s) of %s", i, input.attributes.String("name"), name),
                     input.results[0], types[i]);
  }
  return absl::OkStatus();
}

std::vector<TensorType> OutputTypes(const Graph& body) {
  std::vector<TensorType> types;
  for (const Value& output : body.outputs) types.push_back(body.type(output));
  return types;
}

StatusOr<std::vector<Value>> AddBody(Graph& graph, const Graph& body, std::span<const Value> inputs, int origin) {
  std::unordered_map<std::string, int> params;
  for (const int n : graph.Params()) params.emplace(graph.node(n).attributes.String("name"), n);
  std::vector<int> now(body.nodes().size());
  size_t next = 0;
  for (size_t n = 0; n < now.size(); ++n) {
    const Node& node = body.nodes()[n];
    std::vector<Value> operands;
    for (const Value& input : node.inputs)
      operands.push_back(IsInput(body.node(input.node)) ? inputs[now[input.node]]
                                                        : Value{now[input.node], input.result});
    if (IsInput(node)) {
      now[n] = static_cast<int>(next++);
      continue;
    }
    if (IsParam(node)) {
      const auto known = params.find(node.attributes.String("name"));
      if (known != params.end()) {
        now[n] = known->second;
        continue;
      }
    }
    int where = origin;
    if (node.origin >= 0 && !body.origins()[node.origin].label.empty()) {
      Origin inside = origin >= 0 ? graph.origins()[origin] : Origin();
      absl::StrAppend(&inside.label, inside.label.empty() ? "" : "/", body.origins()[node.origin].label);
      where = graph.AddOrigin(std::move(inside));
    }
    QUERN_ASSIGN(const Value made, graph.AddCopy(node, std::move(operands), where));
    now[n] = made.node;
  }
  AddConstraints(graph.constraints, body.constraints);
  std::vector<Value> outputs;
  for (const Value& output : body.outputs)
    outputs.push_back(IsInput(body.node(output.node)) ? inputs[now[output.node]]
                                                      : Value{now[output.node], output.result});
  return outputs;
}

int Carries(const Node& node) {
  const int64_t carries = node.attributes.Int("carries");
  return static_cast<int>(carries < 0 ? static_cast<int64_t>(node.inputs.size()) : carries);
}

}  // namespace quern::ir
