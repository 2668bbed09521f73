#include "check/find_nan.h"

#include <algorithm>
#include <cmath>

#include "check/value.h"
#include "ir/op.h"

namespace quern::check {
namespace {

bool HasInfinity(const ir::Attributes& attributes) {
  return std::any_of(attributes.values().begin(), attributes.values().end(), [](const auto& entry) {
    const double* number = std::get_if<double>(&entry.second);
    return number != nullptr && std::isinf(*number);
  });
}

// Whether element `index` of the result of an elementwise op has an operand that explains it.
bool Explained(const ir::Graph& graph, const ir::Node& node, const Evaluation& values, std::span<const int64_t> index,
               bool nan) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const ir::Value& input) {
    const double operand = IsFloat(graph.type(input).dtype) ? values.At(input).At(index) : 0;
    return nan ? std::isnan(operand) : !std::isfinite(operand);
  });
}

std::optional<int64_t> Made(const ir::Graph& graph, const ir::Node& node, const Evaluation& values,
                            const ir::RefTensor& result) {
  const Special found = Specials(result);
  if (!found.nan && !found.inf) return std::nullopt;
  if (node.op->kind == ir::OpKind::kElementwise) {
    std::vector<int64_t> index(result.dims.size());
    for (size_t e = 0; e < result.data.size(); ++e, ir::NextIndex(result.dims, index)) {
      if (!std::isfinite(result.data[e]) && !Explained(graph, node, values, index, std::isnan(result.data[e])))
        return static_cast<int64_t>(e);
    }
    return std::nullopt;
  }
  Special given{false, HasInfinity(node.attributes)};
  for (const ir::Value& input : node.inputs) {
    const Special operand = Specials(values.At(input));
    given.nan |= operand.nan;
    given.inf |= operand.inf || operand.nan;
  }
  for (size_t e = 0; e < result.data.size(); ++e) {
    if ((std::isnan(result.data[e]) && !given.nan) || (std::isinf(result.data[e]) && !given.inf))
      return static_cast<int64_t>(e);
  }
  return std::nullopt;
}

}  // namespace

std::optional<MadeSpecial> FirstMade(const ir::Graph& graph, const Evaluation& values, ir::Value value) {
  std::vector<bool> needed(value.node + 1);
  needed[value.node] = true;
  for (int n = value.node; n >= 0; --n) {
    if (!needed[n]) continue;
    for (const ir::Value& input : graph.node(n).inputs) needed[input.node] = true;
  }
  for (int n = 0; n <= value.node; ++n) {
    const ir::Node& node = graph.node(n);
    if (!needed[n] || node.op->kind == ir::OpKind::kLeaf) continue;
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r) {
      if (!IsFloat(node.results[r].dtype)) continue;
      if (const std::optional<int64_t> element = Made(graph, node, values, values.At({n, r})))
        return MadeSpecial{{n, r}, *element};
    }
  }
  return std::nullopt;
}

std::optional<ir::Value> FirstReader(const ir::Graph& graph, std::string_view name) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    for (const ir::Value& input : graph.node(n).inputs) {
      const ir::Node& leaf = graph.node(input.node);
      if (leaf.attributes.Find("name") != nullptr && leaf.op->kind == ir::OpKind::kLeaf &&
          leaf.attributes.String("name") == name)
        return ir::Value{n, 0};
    }
  }
  return std::nullopt;
}

}  // namespace quern::check
