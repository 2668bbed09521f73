#include "opt/substitute.h"

#include "base/diagnostic.h"
#include "opt/rewriter.h"

namespace quern::opt {

Extent Substitute(Extent extent, const Substitution& values) {
  for (const auto& [symbol, value] : values) extent = extent.Substitute(symbol, value);
  return extent;
}

namespace {

std::vector<Extent> Substituted(std::vector<Extent> extents, const Substitution& values) {
  for (Extent& extent : extents) extent = Substitute(std::move(extent), values);
  return extents;
}

ir::Attributes Substituted(const ir::Attributes& attributes, const Substitution& values) {
  ir::Attributes result;
  for (const auto& [name, value] : attributes.values()) {
    const auto* extents = std::get_if<std::vector<Extent>>(&value);
    result.Set(name, extents == nullptr ? value : ir::AttrValue(Substituted(*extents, values)));
  }
  return result;
}

}  // namespace

StatusOr<std::vector<ir::ExtentConstraint>> Substitute(const std::vector<ir::ExtentConstraint>& constraints,
                                                       const Substitution& values, const SymbolRanges& ranges) {
  std::vector<ir::ExtentConstraint> result;
  for (const ir::ExtentConstraint& constraint : constraints) {
    const ir::ExtentConstraint now = {Substitute(constraint.left, values), Substitute(constraint.right, values),
                                      constraint.relation};
    if (now.Never(ranges)) {
      return ToStatus({DiagnosticCode::kSizeConflict, "", "", constraint.ToString(),
                       absl::StrCat("any sizes: ", now.ToString()), ""});
    }
    if (!now.Always(ranges)) ir::AddConstraints(result, {now});
  }
  return result;
}

StatusOr<ir::Graph> Substitute(const ir::Graph& graph, const Substitution& values,
                               const std::function<Status(SymbolRanges& symbols)>& change, const char* pass) {
  Rewriter rewriter(graph, pass, nullptr);
  QUERN_RETURN_IF_ERROR(change(rewriter.to.symbols));
  const SymbolRanges ranges = rewriter.to.symbols;
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    std::vector<std::shared_ptr<const ir::Graph>> bodies = node.bodies;
    for (std::shared_ptr<const ir::Graph>& body : bodies) {
      QUERN_ASSIGN(ir::Graph inner, Substitute(*body, values, change, pass));
      body = std::make_shared<const ir::Graph>(std::move(inner));
    }
    const ir::TensorType type = {node.results[0].dtype, Substituted(node.results[0].dims, values)};
    QUERN_RETURN_IF_ERROR(rewriter.CopyAs(n, Substituted(node.attributes, values), type, std::move(bodies)));
  }
  QUERN_ASSIGN(ir::Graph result, rewriter.Finish());
  QUERN_ASSIGN(result.constraints, Substitute(result.constraints, values, ranges));
  return result;
}

}  // namespace quern::opt
