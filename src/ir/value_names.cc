#include "ir/value_names.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "ir/op.h"

namespace quern::ir {

std::map<Value, std::string> ValueNames(const Graph& graph) {
  std::map<Value, std::string> names;
  std::map<std::string, int> labels;  // how many nodes had each so far
  std::set<std::string> taken;
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const Node& node = graph.node(n);
    if (IsInput(node) || IsParam(node)) taken.insert(node.attributes.String("name"));
  }
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const Node& node = graph.node(n);
    if (IsInput(node) || IsParam(node)) {
      names[{n, 0}] = node.attributes.String("name");
      continue;
    }
    // As modules do it, a node without a label has its number for one.
    const std::string number = absl::StrCat("%", n);
    std::string label = node.origin < 0 ? "" : graph.origins()[node.origin].label;
    if (label.empty()) label = number;
    const int count = ++labels[label];
    std::string name = count == 1 ? label : absl::StrCat(label, "#", count);
    if (taken.contains(name)) name = number;
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r) {
      std::string& result = names[{n, r}];
      result = r == 0 ? name : absl::StrCat(name, ".", r);
      while (!taken.insert(result).second) result += "'";  // another has that label
    }
  }
  return names;
}

std::map<Value, Scheme> SchemesOf(const Graph& graph) {
  std::map<Value, Scheme> schemes;
  if (graph.quantisation.empty()) return schemes;
  for (const auto& [value, name] : ValueNames(graph)) {
    const auto scheme = graph.quantisation.find(name);
    if (scheme != graph.quantisation.end()) schemes[value] = scheme->second;
  }
  return schemes;
}

QuantisationMap MapOf(const Graph& graph, const std::map<Value, Scheme>& schemes) {
  QuantisationMap map;
  if (schemes.empty()) return map;
  const std::map<Value, std::string> names = ValueNames(graph);
  for (const auto& [value, scheme] : schemes) map[names.at(value)] = scheme;
  return map;
}

}  // namespace quern::ir
