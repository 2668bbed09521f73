#include "compiler/observing.h"

#include "absl/strings/str_cat.h"

namespace quern::compiler {

void Observe(ir::Graph& graph, const std::vector<Observed>& outputs) {
  std::vector<ir::Value> values;
  std::vector<std::string> names;
  for (size_t d = 0; d < graph.donations.size(); ++d) {
    values.push_back(graph.outputs[graph.donations[d].output]);
    names.push_back(absl::StrCat("state ", d));
    graph.donations[d].output = static_cast<int>(d);
  }
  for (const Observed& each : outputs) {
    values.push_back(each.value);
    names.push_back(each.name);
  }
  graph.outputs = std::move(values);
  graph.output_names = std::move(names);
}

}  // namespace quern::compiler
