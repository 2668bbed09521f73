#include "opt/sheets.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace quern::opt {
namespace {

using ir::OpKind;

// Groups in an order in which readers come after what they read.
std::vector<int> InOrder(const family::Scope& scope, const FusionGroups& groups) {
  const int count = static_cast<int>(scope.graph.nodes().size());
  std::vector<int> waits(count), order, ready;  // by group: edges from other groups
  auto reads_of = [&](int n, const auto& visit) {
    for (const auto& [user, operand] : scope.users[n]) {
      if (groups.Of(user) != groups.Of(n)) visit(groups.Of(user));
    }
  };
  for (int n = 0; n < count; ++n) {
    if (groups.Of(n) >= 0) reads_of(n, [&](int reader) { ++waits[reader]; });
  }
  for (int n = 0; n < count; ++n) {
    const int group = groups.Of(n);
    if (group >= 0 && groups.Members(group).nodes().front() == n && waits[group] == 0) ready.push_back(group);
  }
  while (!ready.empty()) {
    const int group = ready.back();
    ready.pop_back();
    order.push_back(group);
    for (const int n : groups.Members(group).nodes()) {
      reads_of(n, [&](int reader) {
        if (--waits[reader] == 0) ready.push_back(reader);
      });
    }
  }
  return order;
}

class Sheets {
 public:
  Sheets(const family::Scope& scope, const std::vector<bool>& once, const family::Family& map, FusionGroups& groups)
      : scope_(scope), once_(once), map_(map), groups_(groups), parent_(scope.graph.nodes().size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  void Join() {
    FindLevels();
    for (int n = 0; n < Size(); ++n) {
      for (const auto& [user, operand] : scope_.users[n]) {
        if (Together(n, user)) parent_[Root(n)] = Root(user);
      }
    }
    std::map<int, std::vector<int>> sheets;  // nodes, ascending
    for (int n = 0; n < Size(); ++n) {
      if (MayLie(n)) sheets[Root(n)].push_back(n);
    }
    for (const auto& [root, nodes] : sheets) {
      const size_t pieces = (nodes.size() + kMostOfSheet - 1) / kMostOfSheet;
      JoinIn(nodes, pieces);
    }
  }

 private:
  int Size() const { return static_cast<int>(scope_.graph.nodes().size()); }
  const ir::Node& Node(int n) const { return scope_.graph.node(n); }
  int Root(int n) {
    while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
    return n;
  }

  bool MayLie(int n) const {
    const int group = groups_.Of(n);
    return group >= 0 && groups_.IsSingle(group) && &groups_.FamilyOf(group) == &map_ &&
           Node(n).op->kind == OpKind::kElementwise && Node(n).results.size() == 1;
  }
  bool Alike(int n, int reader) const {
    return MayLie(n) && MayLie(reader) && once_[n] == once_[reader] &&
           Node(n).results[0].dims == Node(reader).results[0].dims;
  }
  // Nodes of one sheet, one of which reads the other. Any path between two nodes of one level is of alike nodes.
  bool Together(int n, int reader) const { return Alike(n, reader) && level_[n] == level_[reader]; }

  // By group, and so by node: how often every way to it from the end of the graph may change from alike nodes to
  // others, at most. As close to what reads it as can be, so that little waits for its readers in memory.
  void FindLevels() {
    const std::vector<int> order = InOrder(scope_, groups_);
    level_.resize(Size());
    for (size_t i = order.size(); i-- > 0;) {
      const family::NodeSet& members = groups_.Members(order[i]);
      int level = 0;
      for (const int n : members.nodes()) {
        for (const auto& [user, operand] : scope_.users[n]) {
          if (groups_.Of(user) != order[i]) level = std::min(level, level_[user] - (Alike(n, user) ? 0 : 1));
        }
      }
      for (const int n : members.nodes()) level_[n] = level;
    }
  }

  // Nodes in order, as that many regions; as more where these have too many operands.
  void JoinIn(const std::vector<int>& nodes, size_t pieces) {
    const size_t each = (nodes.size() + pieces - 1) / pieces;
    if (nodes.size() <= kLeastSheet || each <= kLeastSheet) return;
    for (size_t from = 0; from < nodes.size(); from += each) {
      const std::vector<int> piece(nodes.begin() + static_cast<std::ptrdiff_t>(from),
                                   nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), from + each)));
      if (!groups_.TryJoinAll(piece)) JoinIn(piece, 2);
    }
  }

  const family::Scope& scope_;
  const std::vector<bool>& once_;
  const family::Family& map_;
  FusionGroups& groups_;
  std::vector<int> parent_, level_;
};

}  // namespace

void JoinSheets(const family::Scope& scope, const std::vector<bool>& once, const family::Family& map,
                FusionGroups& groups) {
  Sheets(scope, once, map, groups).Join();
}

}  // namespace quern::opt
