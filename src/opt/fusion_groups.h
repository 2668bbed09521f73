// FusionGroups: a partition of the nodes of a graph that grows by joining groups. Every node that is no leaf starts as
// a group of its own; a join succeeds when a family's rule takes the union and no path leaves the union and comes back.
#pragma once

#include <string>
#include <vector>

#include "opt/fusion_rules.h"

namespace quern::opt {

class FusionGroups {
 public:
  explicit FusionGroups(const FusionContext& context);

  // The group of a node, named by an id; -1 for leaves.
  int Of(int node) const { return group_[node]; }
  const NodeSet& Members(int group) const { return members_[group]; }
  bool IsSingle(int group) const { return members_[group].nodes().size() == 1; }

  // Whether the groups could be one region; an error says why not. Nothing changes.
  Status CanJoin(int a, int b);
  // Joins b into a if they can be one region.
  bool TryJoin(int a, int b);
  // Takes a node out of its group; it becomes a group of its own.
  void Split(int node);

  // Groups that read values of `group`, and those whose values it reads; ascending by first node, without repeats.
  std::vector<int> Readers(int group) const;
  std::vector<int> Sources(int group) const;

 private:
  // Whether a path leaves a and b together and comes back.
  bool MakesCycle(int a, int b);

  const FusionContext& context_;
  std::vector<int> group_;
  std::vector<NodeSet> members_;
  std::vector<int> visited_;
  int visit_ = 0;
};

}  // namespace quern::opt
