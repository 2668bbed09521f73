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
    const std::string number = absl::StrCat("%", n);
    std::string name = number;
    if (IsInput(node) || IsParam(node)) {
      name = node.attributes.String("name");
    } else if (const std::string label = node.origin < 0 ? "" : graph.origins()[node.origin].label; !label.empty()) {
      const int count = ++labels[label];
      name = count == 1 ? label : absl::StrCat(label, "#", count);
      if (!taken.insert(name).second) name = number;
    }
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r)
      names[{n, r}] = r == 0 ? name : absl::StrCat(name, ".", r);
  }
  return names;
}

}  // namespace quern::ir
