#include "opt/fusion_groups.h"

#include <algorithm>

namespace quern::opt {

FusionGroups::FusionGroups(const FusionContext& context) : context_(context), group_(context.graph.nodes().size(), -1) {
  for (int n = 0; n < static_cast<int>(group_.size()); ++n) {
    if (IsLeaf(context.node(n))) continue;
    group_[n] = static_cast<int>(members_.size());
    members_.push_back(NodeSet({n}));
  }
  visited_.resize(members_.size());
}

std::vector<int> FusionGroups::Readers(int group) const {
  std::vector<int> readers;
  for (const int n : members_[group].nodes()) {
    for (const auto& [user, operand] : context_.users[n]) {
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
    for (const ir::Value& input : context_.node(n).inputs) {
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
  std::vector<int> open;
  auto enter = [&](int group, bool from_union) {
    for (const int n : members_[group].nodes()) {
      for (const auto& [user, operand] : context_.users[n]) {
        const int reader = group_[user];
        if (reader == group) continue;
        if (reader == a || reader == b) {
          if (!from_union) return true;
        } else if (visited_[reader] != visit_) {
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

Status FusionGroups::CanJoin(int a, int b) {
  QUERN_RETURN_IF_ERROR(FamilyOf(context_, members_[a].With(members_[b])).status());
  if (MakesCycle(a, b)) return absl::FailedPreconditionError("another region lies between them");
  return absl::OkStatus();
}

bool FusionGroups::TryJoin(int a, int b) {
  if (a == b) return false;
  if (!CanJoin(a, b).ok()) return false;
  members_[a] = members_[a].With(members_[b]);
  for (const int n : members_[b].nodes()) group_[n] = a;
  members_[b] = NodeSet();
  return true;
}

void FusionGroups::Split(int node) {
  const int from = group_[node];
  members_[from] = members_[from].Without(node);
  group_[node] = static_cast<int>(members_.size());
  members_.push_back(NodeSet({node}));
  visited_.push_back(0);
}

}  // namespace quern::opt
