// FusionGroups: a partition of the nodes of a graph that grows by joining groups. Every node that is no leaf starts as
// a group of its own; a join succeeds when a family takes the union and no path leaves the union and comes back.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "family/family.h"

namespace quern::opt {

// Nodes of a sheet (sheets.h): its kernel compiles in seconds.
inline constexpr size_t kMostOfSheet = 6144;

class FusionGroups {
 public:
  // `once`: by node, what is computed once per binding (OncePerBinding). All three outlive the groups.
  FusionGroups(const family::Scope& scope, std::span<const family::Family> families, const std::vector<bool>& once);

  // The group of a node, named by an id; -1 for leaves.
  int Of(int node) const { return group_[node]; }
  const family::NodeSet& Members(int group) const { return members_[group]; }
  bool IsSingle(int group) const { return members_[group].nodes().size() == 1; }
  // The family that the group belongs to.
  const family::Family& FamilyOf(int group) const { return *families_of_[group]; }

  // Whether the group began as a sheet.
  bool IsSheet(int group) const { return sheets_.contains(group); }

  // Whether the groups could be one region; an error says why not. Nothing changes.
  Status CanJoin(int a, int b);
  // Whether this set of nodes could be a region; `sheet`: as long a one as sheets are.
  Status CanBe(const family::NodeSet& nodes, bool sheet = false) const;
  // Joins b into a if they can be one region.
  bool TryJoin(int a, int b);
  // Joins the groups of these nodes, all single, if they can be one region. No path leaves them and comes back. They
  // may be more than kMostOfSheet nodes only by what joins them later.
  bool TryJoinAll(const std::vector<int>& nodes);
  // Takes a node out of its group; it becomes a group of its own.
  void Split(int node);

  // Groups that read values of `group`, and those whose values it reads; ascending by first node, without repeats.
  std::vector<int> Readers(int group) const;
  std::vector<int> Sources(int group) const;

 private:
  // Whether a path leaves a and b together and comes back.
  bool MakesCycle(int a, int b);
  void NoteEnd(int group);
  // Weight-only work happens once per binding: it may not slip into a region that runs every time.
  Status SameRhythm(const family::NodeSet& nodes) const;
  void Add(family::NodeSet nodes);

  const family::Scope& scope_;
  const std::span<const family::Family> families_;
  const std::vector<bool>& once_;
  std::vector<int> group_;
  std::vector<int> end_;  // by node: the last node of the groups that begin there or before, or a later one
  std::vector<family::NodeSet> members_;
  std::vector<const family::Family*> families_of_;
  std::set<int> sheets_;      // groups that began as one
  std::vector<int> finders_;  // ascending: nodes that find a size, which others may name
  std::vector<int> visited_;
  int visit_ = 0;
};

}  // namespace quern::opt
