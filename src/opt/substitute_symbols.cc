// Symbols replaced by numbers, or their ranges narrowed: what a guard (SEQ == 1, SEQ in 2..8) knows is written into the
// graph that the guarded variant is compiled from. Both go into bodies.

#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

Extent Substituted(Extent extent, const Binding& values) {
  for (const auto& [symbol, value] : values) extent = extent.Substitute(symbol, Extent(value));
  return extent;
}

std::vector<Extent> Substituted(std::vector<Extent> extents, const Binding& values) {
  for (Extent& extent : extents) extent = Substituted(std::move(extent), values);
  return extents;
}

ir::Attributes Substituted(const ir::Attributes& attributes, const Binding& values) {
  ir::Attributes result;
  for (const auto& [name, value] : attributes.values()) {
    const auto* extents = std::get_if<std::vector<Extent>>(&value);
    result.Set(name, extents == nullptr ? value : ir::AttrValue(Substituted(*extents, values)));
  }
  return result;
}

StatusOr<std::vector<ir::ExtentConstraint>> Substituted(const std::vector<ir::ExtentConstraint>& constraints,
                                                        const Binding& values) {
  std::vector<ir::ExtentConstraint> result;
  for (const ir::ExtentConstraint& constraint : constraints) {
    const ir::ExtentConstraint now = {Substituted(constraint.left, values), Substituted(constraint.right, values)};
    if (now.left.is_constant() && now.right.is_constant() && now.left != now.right) {
      return absl::InvalidArgumentError(absl::StrFormat("extents %s and %s cannot be equal here: %s is not %s",
                                                        constraint.left.ToString(), constraint.right.ToString(),
                                                        now.left.ToString(), now.right.ToString()));
    }
    AddConstraints(result, {now});
  }
  return result;
}

// `change` for the graph and for the bodies of its nodes, innermost first.
template <typename Change>
StatusOr<ir::Graph> Deep(const ir::Graph& graph, const Change& change, const char* pass, const Binding& values) {
  Rewriter rewriter(graph, pass, nullptr);
  QUERN_RETURN_IF_ERROR(change(rewriter.to.symbols));
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    std::vector<std::shared_ptr<const ir::Graph>> bodies = node.bodies;
    for (std::shared_ptr<const ir::Graph>& body : bodies) {
      QUERN_ASSIGN(ir::Graph inner, Deep(*body, change, pass, values));
      body = std::make_shared<const ir::Graph>(std::move(inner));
    }
    const ir::TensorType type = {node.results[0].dtype, Substituted(node.results[0].dims, values)};
    QUERN_RETURN_IF_ERROR(rewriter.CopyAs(n, Substituted(node.attributes, values), type, std::move(bodies)));
  }
  QUERN_ASSIGN(ir::Graph result, rewriter.Finish());
  QUERN_ASSIGN(result.constraints, Substituted(result.constraints, values));
  return result;
}

}  // namespace

StatusOr<ir::Graph> SubstituteSymbols(const ir::Graph& graph, const Binding& values) {
  auto remove = [&](SymbolRanges& symbols) -> Status {
    for (const auto& [symbol, value] : values) {
      const auto it = symbols.find(symbol);
      if (it == symbols.end()) continue;
      if (value < it->second.low || value > it->second.high) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s = %d is not in %d..%d", symbol, value, it->second.low, it->second.high));
      }
      symbols.erase(it);
    }
    return absl::OkStatus();
  };
  return Deep(graph, remove, "substitute_symbols", values);
}

StatusOr<ir::Graph> NarrowRanges(const ir::Graph& graph, const SymbolRanges& ranges) {
  auto narrow = [&](SymbolRanges& symbols) -> Status {
    for (const auto& [symbol, range] : ranges) {
      const auto it = symbols.find(symbol);
      if (it == symbols.end()) continue;
      if (range.low < it->second.low || range.high > it->second.high || range.low > range.high) {
        return absl::InvalidArgumentError(absl::StrFormat("the range %d..%d of %s does not lie in %d..%d", range.low,
                                                          range.high, symbol, it->second.low, it->second.high));
      }
      it->second = range;
    }
    return absl::OkStatus();
  };
  return Deep(graph, narrow, "narrow_ranges", {});
}

}  // namespace quern::opt
