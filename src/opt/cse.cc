// Equal nodes over equal operands become one: ops are pure, so they have equal values. Nodes with bodies are not
// compared; within a body the same happens.

#include <map>

#include "absl/strings/str_cat.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

// Equal for two nodes exactly when op, operands, attributes, types and data are equal.
std::string Key(const ir::Node& node, const std::vector<ir::Value>& inputs) {
  std::string key = node.op->name;
  for (const ir::Value& input : inputs) absl::StrAppend(&key, " %", input.node, ".", input.result);
  for (const auto& [name, value] : node.attributes.values()) absl::StrAppend(&key, " ", name, "=", ir::ToString(value));
  for (const ir::TensorType& type : node.results) absl::StrAppend(&key, " : ", type.ToString());
  if (node.data != nullptr) {
    key += " data ";
    key.append(node.data->begin(), node.data->end());
  }
  return key;
}

}  // namespace

StatusOr<ir::Graph> Cse(const ir::Graph& graph) {
  Rewriter rewriter(graph, "cse", Cse);
  std::map<std::string, int> seen;  // key to old node
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    if (node.bodies.empty()) {
      const auto [it, fresh] = seen.emplace(Key(node, rewriter.Now(node.inputs)), n);
      if (!fresh) {
        for (int r = 0; r < static_cast<int>(node.results.size()); ++r)
          rewriter.Replace({n, r}, rewriter.Now(ir::Value{it->second, r}));
        continue;
      }
    }
    QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
