#include "opt/attention_rows.h"

#include <algorithm>

#include "ir/attention.h"
#include "ir/spelled_out.h"

namespace quern::opt {
namespace {

std::vector<int64_t> Turned() { return {0, 2, 1, 3}; }  // heads and positions

}  // namespace

bool WantsRowsFirst(const ir::Graph& graph, const Readers& readers, int n, const Extent& batch, const Extent& heads) {
  const auto read_once = [&](int node) { return readers.users[node].size() == 1 && !readers.outputs.contains(node); };
  while (read_once(n) && ir::IsReshape(graph, graph.node(readers.users[n][0].first))) n = readers.users[n][0].first;
  const std::vector<Extent>& dims = graph.type({n, 0}).dims;
  if (readers.outputs.contains(n) || readers.users[n].empty() || dims.size() != 4 || dims[0] != batch ||
      dims[1] != heads)
    return false;
  return std::all_of(readers.users[n].begin(), readers.users[n].end(), [&](const auto& user) {
    const std::vector<int64_t>* perm = ir::PermutationOf(graph.node(user.first));
    return perm != nullptr && *perm == Turned();
  });
}

bool IsTurnedToRows(const ir::Graph& graph, const Readers& readers, int n) {
  const ir::Node& node = graph.node(n);
  if (!ir::IsRoot(node, "attention")) return false;
  const ir::AttentionShape shape(node.attributes);
  return shape.layout == ir::AttentionShape::Layout::kBhsd &&
         WantsRowsFirst(graph, readers, n, node.results[0].dims[0], Extent(shape.heads));
}

StatusOr<ir::Value> OverRows(Rewriter& rewriter, int n) {
  const ir::Node& node = rewriter.from().node(n);
  const ir::MakeNode make = rewriter.Maker(n);
  std::vector<ir::Value> operands = rewriter.Now(node.inputs);
  for (int operand = 0; operand < 3; ++operand) {
    QUERN_ASSIGN(operands[operand], ir::MakePermuted(make, operands[operand], Turned()));
  }
  ir::Attributes attributes = node.attributes;
  attributes.Set("layout", std::string("bshd"));
  QUERN_ASSIGN(const ir::Value rows, ir::MakeAttention(make, std::move(operands), std::move(attributes)));
  return ir::MakePermuted(make, rows, Turned());
}

}  // namespace quern::opt
