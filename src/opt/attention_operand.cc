#include "opt/attention_operand.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/spelled_out.h"

namespace quern::opt {
namespace {

using ir::Value;

// Dimensions of [B, heads, S, D] in that order, and as [B, S, heads, D].
std::vector<int64_t> OrderOf(bool heads_first) {
  return heads_first ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{0, 2, 1, 3};
}

// Dimension d of the result: dimension first[second[d]].
std::vector<int64_t> Composed(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
  std::vector<int64_t> perm;
  for (const int64_t d : second) perm.push_back(first[d]);
  return perm;
}

bool MovesNothing(const std::vector<Extent>& dims, const std::vector<int64_t>& perm) {
  int64_t last = -1;
  for (const int64_t d : perm) {
    if (dims[d] == Extent(1)) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

// The value with its last two dimensions exchanged, if it is turned.
AttentionOperand AsItIs(const ir::Graph& graph, Value value, bool turned) {
  AttentionOperand operand{value, graph.type(value).dims, {}, 1};
  operand.perm.resize(operand.dims.size());
  std::iota(operand.perm.begin(), operand.perm.end(), 0);
  if (turned) std::swap(operand.perm.end()[-1], operand.perm.end()[-2]);
  return operand;
}

// Transposes, factors and widening right behind the value.
void PassMoves(const ir::Graph& graph, AttentionOperand& operand, const OperandReading& reading) {
  while (graph.type(operand.value).dims == operand.dims) {
    const ir::Node& node = graph.node(operand.value.node);
    if (const std::vector<int64_t>* perm = ir::PermutationOf(node); perm != nullptr) {
      operand.perm = Composed(*perm, operand.perm);
      operand.value = node.inputs[0];
    } else if (const std::optional<ir::Scaled> scaled = ir::AsScaled(graph, node); reading.factors && scaled) {
      operand.factor *= scaled->factor;
      operand.value = scaled->x;
    } else if (const std::optional<Value> halves = ir::AsWidened(graph, node); reading.stored && halves) {
      operand.value = *halves;
    } else {
      return;
    }
    operand.dims = graph.type(operand.value).dims;
  }
}

// Heads that are copies: Reshape(Expand(x)), x of fewer heads, each of them `group` times in a row.
bool PassRepeats(const ir::Graph& graph, AttentionOperand& operand) {
  Value value = operand.value;
  while (ir::IsReshape(graph, graph.node(value.node))) value = graph.node(value.node).inputs[0];
  const ir::Node& node = graph.node(value.node);
  if (!ir::IsRepeat(node)) return false;
  const std::vector<Extent>& shape = node.results[0].dims;
  std::vector<Extent> from = graph.type(node.inputs[0]).dims;
  from.insert(from.begin(), shape.size() - from.size(), Extent(1));
  const size_t heads = operand.perm[1];
  // The extents with heads as [kept, group], or as the group alone.
  for (const bool whole : {false, true}) {
    if (shape.size() != operand.dims.size() + (whole ? 0 : 1)) continue;
    const size_t group = whole ? heads : heads + 1;
    const Extent kept = whole ? Extent(1) : shape[heads];
    std::vector<Extent> joined = shape;
    if (!whole) {
      joined.erase(joined.begin() + static_cast<int64_t>(group));
      joined[heads] = kept * shape[group];
    }
    std::vector<Extent> wanted = shape;
    wanted[group] = Extent(1);
    if (joined != operand.dims || from != wanted) continue;
    operand.value = node.inputs[0];
    operand.dims[heads] = kept;
    return true;
  }
  return false;
}

void PassAll(const ir::Graph& graph, AttentionOperand& operand, const OperandReading& reading) {
  for (bool more = true; more;) {
    PassMoves(graph, operand, reading);
    more = reading.repeats && PassRepeats(graph, operand);
    // Other extents of the same elements: what is behind may have those that are wanted.
    while (graph.type(operand.value).dims != operand.dims && ir::IsReshape(graph, graph.node(operand.value.node))) {
      operand.value = graph.node(operand.value.node).inputs[0];
      more = true;
    }
  }
}

// The operand with its dimensions joined to groups, which are ranges of what perm gives; nullopt where those of a group
// do not lie side by side.
std::optional<AttentionOperand> Joined(const AttentionOperand& operand,
                                       const std::vector<std::pair<int, int>>& groups) {
  struct Group {
    int64_t first = -1;  // dimension of the operand's memory
    Extent size = Extent(1);
    size_t number = 0;
  };
  std::vector<Group> placed;
  for (size_t g = 0; g < groups.size(); ++g) {
    Group group{.number = g};
    int64_t last = -1;
    for (int d = groups[g].first; d < groups[g].second; ++d) {
      const int64_t from = operand.perm[d];
      group.size = group.size * operand.dims[from];
      if (group.first < 0 || operand.dims[group.first] == Extent(1)) group.first = from;
      if (operand.dims[from] == Extent(1)) continue;
      for (int64_t between = last + 1; last >= 0 && between < from; ++between) {
        if (operand.dims[between] != Extent(1)) return std::nullopt;
      }
      if (from < last) return std::nullopt;
      last = from;
    }
    // A group of nothing stands behind the one before it.
    if (group.first < 0 && !placed.empty()) group.first = placed.back().first;
    placed.push_back(group);
  }
  std::sort(placed.begin(), placed.end(),
            [](const Group& a, const Group& b) { return std::pair(a.first, a.number) < std::pair(b.first, b.number); });
  AttentionOperand joined{operand.value, {}, std::vector<int64_t>(groups.size()), operand.factor};
  for (const Group& group : placed) {
    joined.perm[group.number] = static_cast<int64_t>(joined.dims.size());
    joined.dims.push_back(group.size);
  }
  return joined;
}

}  // namespace

bool AttentionOperand::Moves(bool heads_first) const {
  return !MovesNothing(dims, Composed(perm, OrderOf(heads_first)));
}

StatusOr<Value> AttentionOperand::Make(const Rewriter& rewriter, const ir::MakeNode& make, bool heads_first) const {
  Value made = rewriter.Now(value);
  if (rewriter.to.type(made).dims != dims) {
    QUERN_ASSIGN(made, ir::MakeReshaped(make, made, dims));
  }
  std::vector<int64_t> moved = Composed(perm, OrderOf(heads_first));
  if (std::is_sorted(moved.begin(), moved.end())) return made;
  return ir::MakePermuted(make, made, std::move(moved));
}

Extent LeadGroups::Product(int from, int to) const {
  return std::accumulate(leads.begin() + from, leads.begin() + to, Extent(1),
                         [](const Extent& a, const Extent& b) { return a * b; });
}

AttentionOperand OperandBehind(const ir::Graph& graph, Value value, const LeadGroups& groups,
                               const OperandReading& reading) {
  const int rank = graph.type(value).rank(), leads = rank - 2;
  // What it lacks of the leading extents is 1.
  const int missing = static_cast<int>(groups.leads.size()) - leads;
  const int batches = reading.regrouped ? leads : std::max(0, groups.batch_end - missing);
  const std::vector<std::pair<int, int>> joining = {
      {0, batches}, {batches, leads}, {leads, leads + 1}, {leads + 1, rank}};
  AttentionOperand moved = AsItIs(graph, value, reading.turned);
  PassMoves(graph, moved, reading);
  std::optional<AttentionOperand> joined = Joined(moved, joining);
  // Where batches or heads are taken apart by Transposes, what those give is read.
  if (!joined) joined = Joined(AsItIs(graph, value, reading.turned), joining);
  if (reading.regrouped) {  // all leads are in the first group and none in the second: divided as the groups are
    joined->dims[joined->perm[0]] = groups.Batch();
    joined->dims[joined->perm[1]] = groups.Heads();
  }
  PassAll(graph, *joined, reading);
  return *std::move(joined);
}

}  // namespace quern::opt
