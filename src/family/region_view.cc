#include "family/region_view.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "absl/strings/str_cat.h"

namespace quern::family {
std::vector<Memory> MemoryOf(const ir::Graph& graph) {
  std::unordered_set<std::string_view> donated;
  for (const ir::Donation& donation : graph.donations) donated.insert(donation.input);
  std::vector<Memory> memory;
  for (const ir::Node& node : graph.nodes()) {
    memory.push_back(Memory::kPlain);
    if (IsParam(node)) memory.back() = Memory::kParam;
    if (IsInput(node) && donated.contains(node.attributes.String("name"))) memory.back() = Memory::kWritable;
  }
  return memory;
}

Scope::Scope(const ir::Graph& graph, const SymbolRanges& ranges, const TargetFacts& facts)
    : graph(graph), ranges(ranges), facts(facts), users(graph.Users()), memory_(MemoryOf(graph)) {
  for (const ir::Node& node : graph.nodes()) output_.emplace_back(node.results.size());
  for (const ir::Value& output : graph.outputs) output_[output.node][output.result] = true;
}

Scope::Scope(std::span<const Memory> outer, const ir::Node& region, const SymbolRanges& ranges,
             const TargetFacts& facts)
    : Scope(region.body(), ranges, facts) {
  const std::vector<int> inputs = graph.Inputs();
  for (size_t i = 0; i < inputs.size(); ++i) memory_[inputs[i]] = outer[region.inputs[i].node];
}

bool Scope::IsOutput(ir::Value value) const { return output_[value.node][value.result]; }

NodeSet::NodeSet(std::vector<int> nodes) : nodes_(std::move(nodes)) { std::sort(nodes_.begin(), nodes_.end()); }

bool NodeSet::Has(int n) const { return std::binary_search(nodes_.begin(), nodes_.end(), n); }

int NodeSet::Position(int n) const {
  const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), n);
  return at == nodes_.end() || *at != n ? -1 : static_cast<int>(at - nodes_.begin());
}

NodeSet NodeSet::With(const NodeSet& other) const {
  NodeSet both;
  std::set_union(nodes_.begin(), nodes_.end(), other.nodes_.begin(), other.nodes_.end(),
                 std::back_inserter(both.nodes_));
  return both;
}

NodeSet NodeSet::Without(int n) const {
  NodeSet rest;
  std::copy_if(nodes_.begin(), nodes_.end(), std::back_inserter(rest.nodes_), [n](int m) { return m != n; });
  return rest;
}

RegionView::RegionView(const Scope& scope, NodeSet nodes)
    : scope(scope), graph(scope.graph), ranges(scope.ranges), facts(scope.facts), nodes_(std::move(nodes)) {
  for (const int n : nodes_.nodes()) {
    std::vector<bool> needed(node(n).results.size());
    for (size_t r = 0; r < needed.size(); ++r) needed[r] = scope.IsOutput({n, static_cast<int>(r)});
    for (const auto& [user, operand] : users(n)) {
      if (!Has(user)) needed[node(user).inputs[operand].result] = true;
    }
    for (size_t r = 0; r < needed.size(); ++r) {
      if (needed[r]) results_.push_back({n, static_cast<int>(r)});
    }
  }
}

RegionView::RegionView(const Scope& body)
    : scope(body),
      graph(body.graph),
      ranges(body.ranges),
      facts(body.facts),
      results_(body.graph.outputs),
      inputs_(body.graph.Inputs()) {
  std::vector<int> nodes;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (graph.nodes()[n].op->kind != ir::OpKind::kLeaf) nodes.push_back(static_cast<int>(n));
  }
  nodes_ = NodeSet(std::move(nodes));
}

bool RegionView::IsReadInside(int n) const {
  return std::any_of(users(n).begin(), users(n).end(), [&](const auto& use) { return Has(use.first); });
}

bool RegionView::IsReadOutside(int n) const {
  return std::any_of(results_.begin(), results_.end(), [&](const ir::Value& result) { return result.node == n; });
}

int RegionView::InputIndex(ir::Value value) const {
  const auto found = std::find(inputs_.begin(), inputs_.end(), value.node);
  return found == inputs_.end() ? -1 : static_cast<int>(found - inputs_.begin());
}

bool RegionView::IsNumber(ir::Value value) const {
  return !Has(value.node) && ir::IsConstant(node(value.node)) && type(value).elements() == Extent(1);
}

ir::Value RegionView::BeforeReshapes(ir::Value value) const {
  while (Has(value.node) && ir::IsReshape(graph, node(value.node))) value = node(value.node).inputs[0];
  return value;
}

std::vector<bool> RegionView::DependsOn(bool (*root)(const ir::Node&)) const {
  std::vector<bool> depends(nodes().size());
  for (size_t i = 0; i < depends.size(); ++i) {
    const ir::Node& node = graph.node(nodes()[i]);
    depends[i] = root(node);
    for (const ir::Value& input : node.inputs) {
      const int at = nodes_.Position(input.node);
      if (at >= 0 && depends[at]) depends[i] = true;
    }
  }
  return depends;
}

std::string RegionView::Describe(int n) const { return absl::StrCat(node(n).op->name, " %", n); }

}  // namespace quern::family
