// Products whose operands lie in any order: what joins one, and which form it takes.
#include "codegen/matmul_plan.h"
#include "codegen/product_space.h"
#include "family/work.h"

namespace quern::codegen {
namespace {

using family::No;
using family::RegionView;
using ir::OpKind;
using ir::Value;

bool IsProduct(const ir::Node& node) { return ir::IsRoot(node, "matmul"); }

// One root, elementwise ops of its extents.
Status Match(const RegionView& view, const std::vector<int>& roots) {
  if (roots.size() != 1) return No("only products with tile ops share a region");
  const int root = roots[0];
  const std::vector<Extent>& dims = view.node(root).results[0].dims;
  for (const Value& input : view.node(root).inputs) {
    if (view.Has(input.node)) return No("operands of a product without tile ops lie in memory");
  }
  const std::vector<bool> depends = view.DependsOn(IsProduct);
  std::vector<bool> named(view.nodes().size());
  for (size_t i = 0; i < view.nodes().size(); ++i) {
    const int n = view.nodes()[i];
    if (n == root) continue;
    named[i] = depends[i];
    const OpKind kind = view.node(n).op->kind;
    if (kind != OpKind::kElementwise && (depends[i] || kind != OpKind::kIndex))
      return No("%s is not elementwise, and %s has no tile ops", view.Describe(n), view.Describe(root));
    if (depends[i] && view.node(n).results[0].dims != dims)
      return No("%s has other extents than the product", view.Describe(n));
  }
  for (const Value& result : view.results()) {
    if (!depends[view.set().Position(result.node)])
      return No("%s is used outside and is no result of the product", view.Describe(result.node));
  }
  return family::NoWorkTwice(view, named, /*own_operands=*/true);
}

MatmulPlan::Form FormOf(const RegionView& view) {
  constexpr int64_t kColumnBytes = 256 << 10;  // of few columns that a chunk keeps
  using Form = MatmulPlan::Form;
  const ProductSpace space(view);
  const int64_t rows = view.UpperBound(space.rows()), columns = view.UpperBound(space.columns()),
                k = view.UpperBound(space.k());
  if (view.facts.blocks || !space.IsOfShortFloats() || k < 1 || columns < 1) return Form::kPlain;
  if (rows <= kFewRows) return space.transposed() ? Form::kPlain : Form::kFewRows;
  if (columns > kFewColumns) return Form::kPanels;
  const bool streams = space.dtype(0) != DType::kBF16 && space.columns().is_constant() &&
                       k <= kColumnBytes / (columns * ScalarBytes(DType::kF32));
  return streams ? Form::kFewColumns : Form::kPanels;
}

}  // namespace

StatusOr<MatmulPlan::Form> MatchAnyOrder(const RegionView& view, const std::vector<int>& roots) {
  QUERN_RETURN_IF_ERROR(Match(view, roots));
  return FormOf(view);
}

}  // namespace quern::codegen
