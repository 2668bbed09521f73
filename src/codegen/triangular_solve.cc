// The family of triangular systems (ir/ops/triangular_solve.cc): columns of the right side know nothing of each other,
// so that chunks are blocks of columns of a matrix, which are vector loops; solved rows stay in scratch.
//
//   for r in 0..N { vec c in 0..W { x[r, c] = b[i, r, c0 + c] } }
//   for r in 0..N {
//     for s in 0..r / 8 * 8 by 8 { vec c in 0..W { x[r, c] = x[r, c] - a[i, r, s] * x[s, c] - .. } }
//     for s in r / 8 * 8..r { .. }
//     vec c in 0..W { let v = x[r, c] / a[i, r, r]; x[r, c] = v; y[i, r, c0 + c] = v } }

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/families.h"
#include "codegen/loops.h"
#include "codegen/recurrence.h"
#include "ir/op.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

constexpr int64_t kColumns = 32;           // of a chunk
constexpr int64_t kRowsAtOnce = 8;         // solved rows that one round of a loop takes
constexpr int64_t kKeptBytes = 512 << 10;  // of solved rows, that the second cache keeps

}  // namespace

family::Matched MatchTriangularSolve(const RegionView& view) { return MatchRecurrence(view, "triangular_solve"); }

StatusOr<LoweredRegion> LowerTriangularSolve(const RegionView& view, const RegionPlan&) {
  const ir::Value result = view.results()[0];
  const ir::Node& node = view.node(result.node);
  const bool transpose = node.attributes.Bool("transpose"), unit = node.attributes.Bool("unit");
  const bool forward = node.attributes.Bool("lower") != transpose;
  const std::vector<Extent>& dims = view.type(result).dims;
  const DType dtype = view.type(result).dtype;
  const int rank = static_cast<int>(dims.size());
  const Extent &n = dims[rank - 2], &columns = dims[rank - 1];

  KernelWriter writer(view, "triangular_solve");
  FusedExpr expr(view.graph);
  writer.ProvideInputs(expr);
  const std::string y = writer.Result(0);
  // The matrices are two grid dimensions at most, and loops inside of a chunk beyond.
  kir::Index batch;
  for (int d = 0; d + 2 < rank; ++d) batch.push_back(kb::Ref(absl::StrCat("i", d)));
  const kir::ExprRef step = kb::Ref("r"), c = kb::Ref("c"), c0 = kb::Ref("c0");
  const auto row = [&](const kir::ExprRef& at) { return forward ? at : kb::FromExtent(n) - 1.0 - at; };
  const auto at = [&](const kir::ExprRef& r, const kir::ExprRef& k) {
    kir::Index index = batch;
    index.push_back(r);
    index.push_back(k);
    return index;
  };
  const auto element = [&](const kir::ExprRef& r, const kir::ExprRef& s) {
    return expr.Element(node.inputs[0], transpose ? at(row(s), row(r)) : at(row(r), row(s)));
  };
  const auto lanes = [&](kir::Block body) {
    return kb::Vec("c", kb::Int(0), Live(columns, c0, kColumns), std::move(body));
  };
  // Solved rows are kept in scratch, those of more than it has room for where the result lies.
  const bool scratch = n.UpperBound(view.ranges).value_or(INT64_MAX) <= kKeptBytes / (kColumns * ScalarBytes(dtype));
  const std::string store = scratch ? "x" : y;
  const auto place = [&](const kir::ExprRef& r) { return scratch ? kir::Index{r, c} : at(row(r), c0 + c); };
  const auto kept = [&](const kir::ExprRef& r) { return kb::At(store, dtype, place(r)); };
  const auto less = [&](const kir::ExprRef& s, int64_t count) {
    kir::ExprRef value = kept(step);
    for (int64_t k = 0; k < count; ++k) {
      const kir::ExprRef solved = s + static_cast<double>(k);
      value = value - element(step, solved) * kept(solved);
    }
    return lanes({kb::Store(store, place(step), kb::Contract(value))});
  };
  const kir::ExprRef s = kb::Ref("s"), end = kb::FromExtent(n), value = kb::Ref("v", dtype);
  const kir::ExprRef whole = step / static_cast<double>(kRowsAtOnce) * static_cast<double>(kRowsAtOnce);
  kir::Block solved = {kb::Let("v", unit ? kept(step) : kept(step) / element(step, step))};
  if (scratch) solved.push_back(kb::Store(store, place(step), value));
  solved.push_back(kb::WithOrigin(kb::Store(y, at(row(step), c0 + c), value), writer.Origin(result.node)));
  const kir::Block solve = {kb::For("s", kb::Int(0), whole, {less(s, kRowsAtOnce)}, kRowsAtOnce),
                            kb::For("s", whole, step, {less(s, 1)}), lanes(std::move(solved))};
  kir::Block block = {
      kb::For("r", kb::Int(0), end,
              {lanes({kb::Store(store, place(step), expr.Element(node.inputs[1], at(row(step), c0 + c)))})}),
      kb::For("r", kb::Int(0), end, solve)};
  if (scratch) block.insert(block.begin(), kb::Alloc("x", {dtype, {n, Extent(kColumns)}, kir::Layout::kRow}));
  for (int d = rank - 3; d >= 2; --d)
    block = {kb::For(absl::StrCat("i", d), kb::Int(0), kb::FromExtent(dims[d]), std::move(block))};
  for (int d = 0; d < std::min(rank - 2, 2); ++d)
    writer.kernel.grid.push_back({absl::StrCat("i", d), kb::Int(0), kb::FromExtent(dims[d]), 1});
  writer.kernel.grid.push_back({"c0", kb::Int(0), kb::FromExtent(columns), kColumns});
  writer.kernel.body = std::move(block);
  return writer.FinishRegion();
}

}  // namespace quern::codegen
