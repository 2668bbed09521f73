// Products whose operands lie in any order: which form one takes.
#include "codegen/matmul_plan.h"
#include "codegen/split_sum.h"

namespace quern::codegen {
namespace {

using family::No;
using family::RegionView;
using Form = MatmulPlan::Form;

constexpr int64_t kShortSum = 4;        // terms of a sum by [K, N] that tiles, which go down columns, only slow down
constexpr int64_t kShortDotted = 2;     // the same by [N, K], of which vectors are still loads and permutes
constexpr int64_t kFewAdded = 4;        // rows of bytes or doubles by [K, N] that are not worth panels
constexpr int64_t kFewDottedBytes = 2;  // the same by [N, K]
constexpr int64_t kFewDottedDoubles = 4;
constexpr int64_t kFewestColumns = 3;      // of doubles as rows of k, which rows are dotted with as they stand
constexpr int64_t kKeptBytes = 256 << 10;  // of few rows or columns that a chunk keeps

// Memory bounds these, and rows of results are written as they lie. Not of one column, whose rows are no vectors.
bool IsShortSum(const ProductSpace& space) {
  const RegionView& view = space.view();
  return space.IsOfShortFloats() && view.UpperBound(space.columns()) > 1 &&
         view.UpperBound(space.k()) <= (space.transposed() ? kShortDotted : kShortSum);
}

Form FormOf(const ProductSpace& space) {
  constexpr int64_t kWritten = 64;  // terms of a sum that few rows need no panels for
  const RegionView& view = space.view();
  const int64_t rows = view.UpperBound(space.rows()), columns = view.UpperBound(space.columns()),
                k = view.UpperBound(space.k());
  const bool wide = space.IsOfBytes() || space.IsOfDoubles();  // for which there are panels alone
  const bool panels = !view.facts.blocks && (space.IsOfShortFloats() || wide) && k >= 1 && columns >= 1;
  if (space.in_panels()) return Form::kPanels;
  if (!space.HasBuffers()) return Form::kPlain;
  if (!space.InMemory(1))
    return panels && (rows > kFewRows || (rows > 1 && k > kWritten)) ? Form::kPanels : Form::kDirect;
  if (!panels) return Form::kPlain;
  // Few rows are added as they stand: panels would cost more than they save.
  const int64_t dotted = space.IsOfBytes() ? kFewDottedBytes : kFewDottedDoubles;
  if (space.IsOfDoubles() && columns <= (space.transposed() ? kFewestColumns : 1)) return Form::kPlain;
  if (wide && rows > (space.transposed() ? dotted : kFewAdded)) return Form::kPanels;
  if (wide) return space.transposed() ? Form::kPlain : Form::kFewRows;
  const int64_t depth = view.UpperBound(SplitSum::OfStreams(space).Most());
  const auto kept = [&](int64_t count) { return depth <= kKeptBytes / (count * ScalarBytes(DType::kF32)); };
  if (IsShortSum(space)) return Form::kPlain;
  if (rows <= kFewRows) {
    if (!space.transposed()) return Form::kFewRows;
    return space.rows().LowerBound(view.ranges).value_or(0) >= 1 && kept(rows) ? Form::kStreams : Form::kPlain;
  }
  return columns <= kFewColumns && space.columns().is_constant() && kept(columns) ? Form::kStreams : Form::kPanels;
}

}  // namespace

std::string MatmulPlan::Remark() const {
  if (!any_order || any_order->form != Form::kPlain || any_order->space->view().facts.blocks) return "";
  const ProductSpace& space = *any_order->space;
  if (IsShortSum(space)) return "";
  return absl::StrFormat("plain loops: %s x %s, %s rows by %s columns over %s", std::string(Name(space.dtype(0))),
                         std::string(Name(space.dtype(1))), space.rows().ToString(), space.columns().ToString(),
                         space.k().ToString());
}

StatusOr<MatmulPlan::AnyOrder> MatchAnyOrder(const RegionView& view, const std::vector<int>& roots) {
  if (roots.size() != 1) return No("only products with tile ops share a region");
  auto space = std::make_unique<const ProductSpace>(view);
  QUERN_RETURN_IF_ERROR(space->Check());
  const Form form = FormOf(*space);
  // Loops over the result have the extents of one.
  for (const ir::Value& result : view.results()) {
    if (form == Form::kPlain && view.type(result).dims != space->node().results[0].dims)
      return No("%s has other extents than the product", view.Describe(result.node));
  }
  return MatmulPlan::AnyOrder{std::move(space), form};
}

}  // namespace quern::codegen
