#include "opt/fusion_groups.h"

#include <algorithm>
#include <numeric>

#include "ir/counted.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

using family::No;
using family::NodeSet;
using family::RegionView;

// What a region has at most: kernels stay readable, and compile in milliseconds. Sheets are cut into loops that are
// short again.
struct Most {
  size_t nodes, buffers;  // inputs and outputs
};
constexpr Most kMost = {128, 48}, kMostInSheet = {kMostOfSheet + kMostOfSheet / 4, 512};

// Values that the region reads and makes.
size_t Buffers(const RegionView& view) {
  std::vector<ir::Value> inputs;
  for (const int n : view.nodes()) {
    for (const ir::Value& input : view.node(n).inputs) {
      if (!view.Has(input.node)) inputs.push_back(input);
    }
  }
  std::sort(inputs.begin(), inputs.end());
  return view.results().size() + static_cast<size_t>(std::unique(inputs.begin(), inputs.end()) - inputs.begin());
}

}  // namespace

FusionGroups::FusionGroups(const family::Scope& scope, std::span<const family::Family> families,
                           const std::vector<bool>& once)
    : scope_(scope), families_(families), once_(once), group_(scope.graph.nodes().size(), -1), end_(group_.size()) {
  std::iota(end_.begin(), end_.end(), 0);
  for (const auto& [symbol, node] : ir::CountingNodes(scope.graph)) finders_.push_back(node);
  std::sort(finders_.begin(), finders_.end());
  for (int n = 0; n < static_cast<int>(group_.size()); ++n) {
    if (ir::IsLeaf(scope.graph.node(n))) continue;
    group_[n] = static_cast<int>(members_.size());
    Add(NodeSet({n}));
  }
}

void FusionGroups::Add(NodeSet nodes) {
  families_of_.push_back(&family::FamilyOf(families_, RegionView(scope_, nodes)));
  members_.push_back(std::move(nodes));
  visited_.push_back(0);
}

std::vector<int> FusionGroups::Readers(int group) const {
  std::vector<int> readers;
  for (const int n : members_[group].nodes()) {
    for (const auto& [user, operand] : scope_.users[n]) {
      const int reader = group_[user];
      if (reader != group && std::find(readers.begin(), readers.end(), reader) == readers.end())
        readers.push_back(reader);
    }
  }
  std::sort(readers.begin(), readers.end(),
            [&](int a, int b) { return members_[a].nodes()[0] < members_[b].nodes()[0]; });
  return readers;
}

std::vector<int> FusionGroups::Sources(int group) const {
  std::vector<int> sources;
  for (const int n : members_[group].nodes()) {
    for (const ir::Value& input : scope_.graph.node(n).inputs) {
      const int source = group_[input.node];
      if (source >= 0 && source != group && std::find(sources.begin(), sources.end(), source) == sources.end())
        sources.push_back(source);
    }
  }
  std::sort(sources.begin(), sources.end(),
            [&](int a, int b) { return members_[a].nodes()[0] < members_[b].nodes()[0]; });
  return sources;
}

bool FusionGroups::MakesCycle(int a, int b) {
  ++visit_;
  // A way back ends at a node of the union. From behind its last node it leads through a group that has nodes on either
  // side; groups that begin behind the end of all of those lead nowhere.
  int last = std::max(members_[a].nodes().back(), members_[b].nodes().back());
  while (end_[last] > last) last = end_[last];
  std::vector<int> open;
  auto enter = [&](int group, bool from_union) {
    for (const int n : members_[group].nodes()) {
      for (const auto& [user, operand] : scope_.users[n]) {
        const int reader = group_[user];
        if (reader == group) continue;
        if (reader == a || reader == b) {
          if (!from_union) return true;
        } else if (visited_[reader] != visit_ && members_[reader].nodes().front() <= last) {
          visited_[reader] = visit_;
          open.push_back(reader);
        }
      }
    }
    return false;
  };
  enter(a, true);
  enter(b, true);
  while (!open.empty()) {
    const int group = open.back();
    open.pop_back();
    if (enter(group, false)) return true;
  }
  return false;
}

void FusionGroups::NoteEnd(int group) {
  const int back = members_[group].nodes().back();
  for (int n = members_[group].nodes().front(); end_[n] < back; ++n) end_[n] = back;
}

Status FusionGroups::SameRhythm(const NodeSet& nodes) const {
  int once = -1, always = -1;
  for (const int n : nodes.nodes()) {
    const ir::Node& node = scope_.graph.node(n);
    const Extent own = node.results[0].elements();
    // Single elements, broadcasts of weights and what is made of indices alone cost nothing to repeat.
    const Extent read = node.inputs.empty() ? Extent(0) : scope_.graph.type(node.inputs[0]).elements();
    const bool broadcast =
        node.op->kind == ir::OpKind::kIndex && read != own && own.ProvablyAtLeast(read, scope_.ranges);
    if (!once_[n]) {
      always = n;
    } else if (own != Extent(1) && !broadcast) {
      once = n;
    }
  }
  if (once < 0 || always < 0) return absl::OkStatus();
  const RegionView view(scope_, nodes);
  return No("%s is computed once per binding, %s in every run", view.Describe(once), view.Describe(always));
}

Status FusionGroups::CanBe(const NodeSet& nodes, bool sheet) const {
  const Most& most = sheet ? kMostInSheet : kMost;
  if (nodes.nodes().size() > most.nodes) return No("a region has at most %u nodes", most.nodes);
  const RegionView view(scope_, nodes);
  for (const int n : nodes.nodes()) {
    if (ir::IsControl(view.node(n))) return No("%s is a step of its own", view.Describe(n));
  }
  // What names a size runs after it has been found, whether or not it reads what was found with it.
  const auto finder = std::lower_bound(finders_.begin(), finders_.end(), nodes.nodes().front());
  if (finder != finders_.end() && *finder < nodes.nodes().back())
    return No("%s finds a size between them", scope_.graph.node(*finder).op->name);
  if (Buffers(view) > most.buffers) return No("a kernel has at most %u buffers", most.buffers);
  QUERN_RETURN_IF_ERROR(SameRhythm(nodes));
  return family::FamilyOf(families_, view).match(view).status();
}

Status FusionGroups::CanJoin(int a, int b) {
  // What a region has room for was joined at once (sheets.h).
  if (IsSheet(a) && IsSheet(b))
    return No("both are long already, and a region has at most %u nodes and %u buffers", kMostOfSheet,
              kMostInSheet.buffers);
  QUERN_RETURN_IF_ERROR(CanBe(members_[a].With(members_[b]), IsSheet(a) || IsSheet(b)));
  if (MakesCycle(a, b)) return No("another region lies between them");
  return absl::OkStatus();
}

bool FusionGroups::TryJoin(int a, int b) {
  if (a == b) return false;
  if (!CanJoin(a, b).ok()) return false;
  members_[a] = members_[a].With(members_[b]);
  for (const int n : members_[b].nodes()) group_[n] = a;
  members_[b] = NodeSet();
  if (IsSheet(b)) sheets_.insert(a);
  NoteEnd(a);
  families_of_[a] = &family::FamilyOf(families_, RegionView(scope_, members_[a]));
  return true;
}

bool FusionGroups::TryJoinAll(const std::vector<int>& nodes) {
  NodeSet all(nodes);
  if (!CanBe(all, /*sheet=*/true).ok()) return false;
  const int into = group_[nodes[0]];
  for (const int n : nodes) {
    members_[group_[n]] = NodeSet();
    group_[n] = into;
  }
  members_[into] = std::move(all);
  sheets_.insert(into);
  NoteEnd(into);
  return true;
}

void FusionGroups::Split(int node) {
  const int from = group_[node];
  members_[from] = members_[from].Without(node);
  families_of_[from] = &family::FamilyOf(families_, RegionView(scope_, members_[from]));
  group_[node] = static_cast<int>(members_.size());
  Add(NodeSet({node}));
}

}  // namespace quern::opt
