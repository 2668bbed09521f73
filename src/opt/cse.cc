// Equal nodes over equal operands become one: ops are pure, so they have equal values. Nodes with bodies are not
// compared; within a body the same happens.
//
// Windows of an image stay apart, since what reads them computes their elements on the way, where one Window for two
// readers would be many times the image in memory. Those of images with channels last, whose rows products share, are
// one.

#include <map>

#include "absl/strings/str_cat.h"
#include "ir/spelled_out.h"
#include "ir/window.h"
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

// By node: Windows that others than a Transpose to rows read.
std::vector<bool> WindowsApart(const ir::Graph& graph) {
  std::vector<bool> apart(graph.nodes().size());
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::Value& input : node.inputs) {
      if (ir::IsWindow(graph.node(input.node)) && ir::PermutationOf(node) == nullptr) apart[input.node] = true;
    }
  }
  return apart;
}

}  // namespace

StatusOr<ir::Graph> Cse(const ir::Graph& graph) {
  Rewriter rewriter(graph, "cse", Cse);
  const std::vector<bool> apart = WindowsApart(graph);
  std::map<std::string, int> seen;  // key to old node
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    if (node.bodies.empty() && !apart[n]) {
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
