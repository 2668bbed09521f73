// The reduce family: row programs, and reductions over any axes.

#include <algorithm>

#include "opt/fusion_rules.h"

namespace quern::opt {
namespace {

constexpr int64_t kMaxExpression = 600;  // nodes of one reduction's body with shared values written out

std::vector<bool> ReducedAxes(const ir::Node& node, int rank) {
  std::vector<bool> reduced(rank);
  for (const int64_t axis : node.attributes.Ints("axes")) reduced[axis < 0 ? axis + rank : axis] = true;
  return reduced;
}

bool IsReduction(const ir::Node& node) { return IsReduce(node) || IsQuantize(node); }

// Whether every reduction is over the last axis of rows of the same extents. Those extents go to `rows`.
bool HasRows(const FusionContext& context, const NodeSet& set, std::vector<Extent>* rows) {
  bool found = false;
  for (const int n : set.nodes()) {
    const ir::Node& node = context.node(n);
    if (!IsReduction(node)) continue;
    const ir::TensorType& x = context.graph.type(node.inputs[0]);
    if (x.rank() == 0 || (found && *rows != x.dims)) return false;
    *rows = x.dims;
    found = true;
    if (!IsReduce(node)) continue;
    const std::vector<bool> reduced = ReducedAxes(node, x.rank());
    if (std::count(reduced.begin(), reduced.end(), true) != 1 || !reduced.back()) return false;
  }
  return true;
}

// A reduction's body is one expression in which a value with two uses stands twice: a chain of such values doubles at
// every step.
Status ShortExpressions(const FusionContext& context, const NodeSet& set) {
  const std::vector<int>& nodes = set.nodes();
  std::vector<int64_t> size(nodes.size(), 1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ir::Node& node = context.node(nodes[i]);
    for (const ir::Value& input : node.inputs) {
      const auto at = std::lower_bound(nodes.begin(), nodes.end(), input.node);
      if (at == nodes.end() || *at != input.node) continue;
      size[i] += size[at - nodes.begin()] * (Is(node, "Rope") ? 2 : 1);
    }
    if (size[i] > kMaxExpression)
      return absl::FailedPreconditionError(absl::StrFormat("%s is too long an expression", context.Describe(nodes[i])));
    if (IsReduce(node)) size[i] = 1;
  }
  return absl::OkStatus();
}

Status RowRule(const FusionContext& context, const NodeSet& set, const std::vector<Extent>& rows) {
  const std::vector<int>& nodes = set.nodes();
  const std::vector<Extent> outer(rows.begin(), rows.end() - 1);
  std::vector<Extent> kept = outer;
  kept.push_back(Extent(1));
  const bool single = rows.back() == Extent(1);  // rows and their scalars look the same
  auto is_row = [&](int n) { return context.type(n).dims == rows; };
  auto is_kept = [&](int n) { return context.type(n).dims == kept; };
  auto is_dropped = [&](int n) { return !single && context.type(n).dims == outer; };
  const std::vector<bool> depends = DependsOn(context, set, IsReduce);
  std::vector<bool> named(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int n = nodes[i];
    const ir::Node& node = context.node(n);
    if (IsQuantize(node)) {
      if (std::any_of(context.users[n].begin(), context.users[n].end(),
                      [&](const auto& use) { return set.Has(use.first); })) {
        return absl::FailedPreconditionError(absl::StrFormat("%s ends a row program", context.Describe(n)));
      }
      continue;
    }
    named[i] = depends[i] && !is_row(n);
    if (depends[i]) {
      if (!IsReduce(node) && !IsElementwise(node)) {
        return absl::FailedPreconditionError(
            absl::StrFormat("%s comes after a reduction and is not elementwise", context.Describe(n)));
      }
      if (!is_row(n) && !is_kept(n) && !is_dropped(n)) {
        return absl::FailedPreconditionError(
            absl::StrFormat("%s is neither a row nor one element a row", context.Describe(n)));
      }
    }
    for (const auto& [user, operand] : context.users[n]) {
      if (!set.Has(user)) continue;
      const ir::Node& reader = context.node(user);
      // A scalar of a row without its dimension of 1 lines up with rows only where nothing broadcasts.
      if (depends[i] && is_dropped(n) && !is_dropped(user)) {
        return absl::FailedPreconditionError(
            absl::StrFormat("%s has one element a row, but %s reads it along another dimension", context.Describe(n),
                            context.Describe(user)));
      }
      // A row may be kept in scratch, and then only its own elements are at hand.
      if (is_row(n) && !IsReduction(reader) && !(IsElementwise(reader) && is_row(user))) {
        return absl::FailedPreconditionError(
            absl::StrFormat("%s reads other elements of %s than its own", context.Describe(user), context.Describe(n)));
      }
      if (depends[i] && IsElementwise(reader) && is_row(n) && !is_row(user)) {
        return absl::FailedPreconditionError(
            absl::StrFormat("%s reads whole rows of %s", context.Describe(user), context.Describe(n)));
      }
    }
  }
  for (const int n : OutputsOf(context, set)) {
    if (is_row(n) || is_kept(n) || is_dropped(n)) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("the result %s is neither a row nor one element a row", context.Describe(n)));
  }
  for (const int n : nodes) {
    if (Is(context.node(n), "Gather") && IsBlock(context.graph.type(context.node(n).inputs[0]).dtype)) {
      return absl::FailedPreconditionError(absl::StrFormat("%s decodes whole rows by itself", context.Describe(n)));
    }
  }
  return NoWorkTwice(context, set, named);
}

Status PointRule(const FusionContext& context, const NodeSet& set) {
  const std::vector<int>& nodes = set.nodes();
  const std::vector<bool> depends = DependsOn(context, set, IsReduce);
  const std::vector<Extent>* dims = nullptr;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ir::Node& node = context.node(nodes[i]);
    if (IsQuantize(node))
      return absl::FailedPreconditionError(
          absl::StrFormat("%s needs reductions over the last axis alone", context.Describe(nodes[i])));
    if (!depends[i]) continue;
    if (dims == nullptr) dims = &context.type(nodes[i]).dims;
    if (context.type(nodes[i]).dims != *dims) {
      return absl::FailedPreconditionError(
          absl::StrFormat("%s has other extents than the reductions", context.Describe(nodes[i])));
    }
    if (IsElementwise(node)) continue;
    if (!IsReduce(node))
      return absl::FailedPreconditionError(
          absl::StrFormat("%s comes after a reduction and is not elementwise", context.Describe(nodes[i])));
    const auto at = std::lower_bound(nodes.begin(), nodes.end(), node.inputs[0].node);
    if (at != nodes.end() && *at == node.inputs[0].node && depends[at - nodes.begin()]) {
      return absl::FailedPreconditionError(
          absl::StrFormat("%s would compute another reduction for every element", context.Describe(nodes[i])));
    }
  }
  for (const int n : OutputsOf(context, set)) {
    if (context.type(n).dims != *dims) {
      return absl::FailedPreconditionError(
          absl::StrFormat("the result %s has other extents than the reductions", context.Describe(n)));
    }
  }
  return NoWorkTwice(context, set, std::vector<bool>(nodes.size()));
}

}  // namespace

Status ReduceRule(const FusionContext& context, const NodeSet& set) {
  QUERN_RETURN_IF_ERROR(ShortExpressions(context, set));
  std::vector<Extent> rows;
  return HasRows(context, set, &rows) ? RowRule(context, set, rows) : PointRule(context, set);
}

}  // namespace quern::opt
