#include "ir/sort.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

// Whether a lies before b among ascending values.
bool IsLess(const RefTensor& x, int64_t a, int64_t b) {
  if (IsInteger(x.dtype)) return x.Integer(a) < x.Integer(b);
  return std::isnan(x.data[b]) ? !std::isnan(x.data[a]) : x.data[a] < x.data[b];
}

}  // namespace

bool RunsAlongOther(const Node& node) {
  const size_t rank = node.results[0].dims.size();
  return FromStart(node.attributes.Int("axis"), rank) + 1 != static_cast<int64_t>(rank);
}

StatusOr<std::vector<Value>> OrderedAlongLast(Graph& graph, const Node& node, std::span<const Value> inputs,
                                              int origin) {
  Expansion e(graph, origin);
  const auto rank = static_cast<int64_t>(node.results[0].dims.size());
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[FromStart(node.attributes.Int("axis"), rank)], perm.back());
  Attributes attributes = node.attributes;
  attributes.Set("axis", int64_t{-1});
  const Value ordered = e.Add(node.op->name, {e.Add("Transpose", {inputs[0]}, {{"perm", perm}})}, attributes);
  std::vector<Value> results;
  for (int r = 0; r < 2; ++r) results.push_back(e.Add("Transpose", {{ordered.node, r}}, {{"perm", perm}}));
  return e.Finish(std::move(results));
}

Status ReferenceOrder(RefContext& context, bool descending) {
  const RefTensor& x = *context.operands[0];
  RefTensor &values = context.results[0], &places = context.results[1];
  const int64_t axis = context.node.attributes.Int("axis");
  std::vector<std::vector<int64_t>> from;
  ForEachLine(x, axis, [&](const std::vector<int64_t>& at) { from.push_back(at); });
  size_t line = 0;
  ForEachLine(values, axis, [&](const std::vector<int64_t>& to) {
    const std::vector<int64_t>& at = from[line++];
    std::vector<int64_t> order(at.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const bool before = IsLess(x, at[a], at[b]), after = IsLess(x, at[b], at[a]);
      return before == after ? a < b : before != descending;
    });
    for (size_t i = 0; i < to.size(); ++i) {
      values.Take(to[i], x, at[order[i]]);
      places.SetInteger(to[i], order[i]);
    }
  });
  return absl::OkStatus();
}

}  // namespace quern::ir
