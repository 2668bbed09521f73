#include "opt/shared_targets.h"

#include <algorithm>
#include <optional>

#include "family/region_view.h"
#include "opt/rewriter.h"

namespace quern::opt {

using ir::Value;

bool WritesLast(const ir::Graph& graph, const Users& users, int n) {
  const ir::Node& node = graph.node(n);
  if (node.op->kind != ir::OpKind::kWrite || node.op->scatter != nullptr || node.inputs.size() != 3) return false;
  const int target = node.inputs[0].node;
  return ir::IsInput(graph.node(target)) && users[n].empty() && users[target].size() > 1 &&
         std::all_of(users[target].begin(), users[target].end(), [&](const std::pair<int, int>& use) {
           return use.second == 0 && (use.first == n || ir::PicksSlices(graph, graph.node(use.first)));
         });
}

namespace {

// Whether the node writes over a donated input that nothing else reads, or only what is read before, and is what is
// handed back for it.
bool WritesInPlace(const ir::Graph& graph, const Users& users, int n, const ir::Takeover& takeover) {
  const int from = graph.node(n).inputs[takeover.operand].node;
  if (users[from].size() != 1 && !WritesLast(graph, users, n)) return false;
  return std::any_of(graph.donations.begin(), graph.donations.end(), [&](const ir::Donation& donation) {
    return donation.input == graph.node(from).attributes.String("name") &&
           graph.outputs[donation.output] == Value{n, takeover.result};
  });
}

}  // namespace

StatusOr<ir::Graph> CopySharedTargets(const ir::Graph& graph) {
  const std::vector<family::Memory> memory = family::MemoryOf(graph);
  const auto users = graph.Users();
  Rewriter rewriter(graph, "fuse_regions", nullptr);
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    const std::optional<ir::Takeover> takeover = ir::TakeoverOf(node);
    const int target = takeover ? node.inputs[takeover->operand].node : -1;
    if (target < 0 || memory[target] != family::Memory::kWritable || WritesInPlace(graph, users, n, *takeover)) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    const Value shared = node.inputs[takeover->operand];
    QUERN_ASSIGN(const Value copy, ir::MakeCopy(rewriter.Maker(n), rewriter.Now(shared), graph.type(shared).dtype));
    std::vector<Value> operands = rewriter.Now(node.inputs);
    operands[takeover->operand] = copy;
    QUERN_ASSIGN(const Value written, rewriter.Add(n, node.op->name, std::move(operands), node.attributes));
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r) rewriter.Replace({n, r}, {written.node, r});
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
