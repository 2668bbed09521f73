#include "family/work.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "ir/spelled_out.h"
#include "ir/window.h"

namespace quern::family {
namespace {

using ir::OpKind;

void AddOnce(std::vector<Extent>& list, const Extent& extent) {
  if (std::find(list.begin(), list.end(), extent) == list.end()) list.push_back(extent);
}

// Whether where an element of the node's result comes from is more than a step along its operand: pieces have to be
// told apart, an index be divided or computed, or memory be read across.
bool IsSearch(const RegionView& view, const ir::Node& node) {
  if (node.op->pieces != nullptr || LooksUp(view, node)) return true;
  if (ir::IsRepeat(node)) return view.type(node.inputs[0]).elements() != Extent(1);
  const std::vector<int64_t>* perm = ir::PermutationOf(node);
  return perm != nullptr && perm->back() + 1 != static_cast<int64_t>(perm->size());
}

// Windows of such a result would find each element as often as a window has it.
Status NoWindowsOfSearches(const RegionView& view) {
  std::vector<bool> behind(view.nodes().size());
  for (size_t i = behind.size(); i-- > 0;) {
    const ir::Node& node = view.node(view.nodes()[i]);
    if (behind[i] && IsSearch(view, node)) {
      return absl::FailedPreconditionError(
          absl::StrFormat("%s would be followed for every window", view.Describe(view.nodes()[i])));
    }
    if (!ir::IsWindow(node) && !(behind[i] && node.op->kind == OpKind::kIndex) && !(behind[i] && ir::IsCast(node)))
      continue;
    for (const ir::Value& input : node.inputs) {
      if (const int at = view.set().Position(input.node); at >= 0) behind[at] = true;
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool LooksUp(const RegionView& view, const ir::Node& node) {
  return node.op->kind == OpKind::kIndex && node.inputs.size() == 2 && view.type(node.inputs[0]).rank() == 1 &&
         view.type(node.inputs[1]).rank() > 1;
}

Status NoWorkTwice(const RegionView& view, const std::vector<bool>& named, bool own_operands) {
  QUERN_RETURN_IF_ERROR(NoWindowsOfSearches(view));
  const std::vector<int>& nodes = view.nodes();
  // How often each node is evaluated, seen from each reader; users come before producers in the backward walk.
  std::vector<std::vector<Extent>> wanted(nodes.size());
  for (const ir::Value& result : view.results()) {
    if (const int at = view.set().Position(result.node); at >= 0) AddOnce(wanted[at], view.type(result).elements());
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    const ir::Node& node = view.node(nodes[i]);
    const Extent own = node.results[0].elements();
    std::vector<Extent> passed_on = wanted[i];
    switch (node.op->kind) {
      case OpKind::kRoot:
        if (own_operands) continue;
        passed_on = {view.type(node.inputs[0]).elements()};
        break;
      case OpKind::kPack: passed_on = {view.type(node.inputs[0]).elements()}; break;
      case OpKind::kWrite: passed_on = {view.type(ir::Written(node)).elements()}; break;
      case OpKind::kLeaf:
      case OpKind::kElementwise:
      case OpKind::kIndex:
      case OpKind::kComposite:
      case OpKind::kControl:
      case OpKind::kRegion:
        if (node.op->kind != OpKind::kElementwise && !named[i]) break;
        for (const Extent& times : wanted[i]) {
          if (named[i] || own == Extent(1) || own.ProvablyAtLeast(times, view.ranges)) continue;
          return absl::FailedPreconditionError(absl::StrFormat("%s would be computed %s times for its %s elements",
                                                               view.Describe(nodes[i]), times.ToString(),
                                                               own.ToString()));
        }
        if (own != Extent(1)) passed_on = {own};
        break;
    }
    for (size_t o = 0; o < node.inputs.size(); ++o) {
      const int at = view.set().Position(node.inputs[o].node);
      if (at < 0) continue;
      // Each piece of a join is computed where it lies.
      if (node.op->pieces != nullptr) passed_on = {view.type(node.inputs[o]).elements()};
      const int64_t reads = o == 0 ? node.op->reads : 1;
      if (o == 0 && node.op->kind == OpKind::kWrite) {
        AddOnce(wanted[at], view.type(node.inputs[0]).elements());
        continue;
      }
      for (const Extent& times : passed_on) AddOnce(wanted[at], times * Extent(reads));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::family
