#include "codegen/split_sum.h"

#include <algorithm>

#include "base/divide.h"
#include "codegen/loops.h"
#include "codegen/matmul_plan.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kFewChunks = 32;     // with twice as many no thread would be done before others
constexpr int64_t kLeastDepth = 1024;  // of a part: sums that are written and read again are little beside that
constexpr int64_t kLeastOfFew = 512;   // the same of few rows, where the sums are little beside what streams by
constexpr int64_t kMostRows = 192;     // more are chunks of their own
constexpr int64_t kChunksOfSizes = 8;  // of columns, where it takes a run to say how many rows there are
constexpr int64_t kSumColumns = 256;   // of a chunk of the second kernel

}  // namespace

// Fewer where that leaves too few chunks, down to what the dot tile has in flight; columns that a chunk turns first
// want rows for it.
int64_t SplitSum::StreamedRows(const ProductSpace& space) {
  constexpr int64_t kMost = 64, kLeast = 16;
  const RegionView& view = space.view();
  const bool few_rows = view.UpperBound(space.rows()) <= kFewRows;
  std::vector<Extent> streamed = space.batch();
  streamed.push_back(few_rows ? space.columns() : space.rows());
  const int64_t all = BoundedElements(streamed, view.ranges);
  int64_t rows = kMost;
  while (rows > (few_rows || space.transposed() ? kLeast : kMost) && CeilDiv(all, rows) < kChunksWanted) rows /= 2;
  return rows;
}

SplitSum SplitSum::OfStreams(const ProductSpace& space) {
  constexpr int64_t kVectors = 64;  // parts of k are whole vectors of any type
  const int64_t rows = StreamedRows(space);
  return SplitSum(space, DType::kF32, rows, rows, kVectors);
}

SplitSum::SplitSum(const ProductSpace& space, DType type, int64_t columns, int64_t rows, int64_t step)
    : space_(space), type_(type) {
  const RegionView& view = space.view();
  if (step < 1 || !space.k().is_constant()) return;
  const int64_t most_rows = view.UpperBound(space.rows()),
                least_rows = space.rows().LowerBound(view.ranges).value_or(0);
  std::vector<Extent> all = space.batch();
  all.push_back(Extent(CeilDiv(view.UpperBound(space.columns()), columns)));
  if (least_rows > kMostRows && space.batch_axes().empty()) all.push_back(Extent(least_rows / rows));
  const int64_t chunks = BoundedElements(all, view.ranges), k = space.k().constant();
  if (chunks < 1 || chunks > (most_rows > kMostRows && least_rows < most_rows ? kChunksOfSizes : kFewChunks)) return;
  const int64_t parts =
      std::min(CeilDiv(kChunksWanted, chunks), k / (most_rows <= kFewRows ? kLeastOfFew : kLeastDepth));
  if (parts < 2) return;
  depth_ = CeilDiv(CeilDiv(k, parts), step) * step;
  parts_ = CeilDiv(k, depth_);
}

kir::ExprRef SplitSum::First(int64_t unit) const {
  return splits() ? kb::Ref("s0") * static_cast<double>(depth_ / unit) : kb::Int(0);
}

kir::ExprRef SplitSum::End(int64_t unit) const {
  if (!splits()) return kb::FromExtent(space_.k());
  const kir::ExprRef end = kb::Int(space_.k().constant() / unit);
  const kir::ExprRef own = First(unit) + static_cast<double>(depth_ / unit);
  return IsMultiple(space_.k(), depth_) ? own : kb::Min(own, end);
}

Extent SplitSum::Most() const { return splits() ? Extent(depth_) : space_.k(); }

kir::Block SplitSum::Over(const std::function<kir::Block(const kir::ExprRef& first, const Extent& count)>& over) const {
  if (!splits() || IsMultiple(space_.k(), depth_)) return over(First(), Most());
  const int64_t last = (parts_ - 1) * depth_;
  return {kb::If(kb::Call(kir::Op::kLt, {kb::Ref("s0"), kb::Int(parts_ - 1)}), over(First(), Most()),
                 over(kb::Int(last), Extent(space_.k().constant() - last)))};
}

kir::BufferType SplitSum::Parts() const {
  std::vector<Extent> dims = space_.batch();
  dims.insert(dims.end(), {Extent(parts_), space_.rows(), space_.columns()});
  return {type_, std::move(dims), kir::Layout::kRow};
}

kir::Index SplitSum::PartAt(const ProductKernel& kernel, const kir::ExprRef& part, const kir::ExprRef& row,
                            const kir::ExprRef& column) const {
  kir::Index at = kernel.BatchLoops();
  at.insert(at.end(), {part, row, column});
  return at;
}

kir::Block SplitSum::Finish(ProductKernel& kernel, const kir::ExprRef& row, const kir::ExprRef& column,
                            const kir::ExprRef& sum) const {
  if (!splits()) return kernel.Results(row, column, sum);
  const std::string parts = kernel.writer().Temporary(0, Parts(), true);
  return {kernel.Of(kb::Store(parts, PartAt(kernel, kb::Ref("s0"), row, column), sum))};
}

StatusOr<LoweredRegion> SplitSum::Lower(ProductKernel& kernel, std::vector<kir::GridDim> grid, kir::Block chunk) const {
  if (!splits()) return kernel.Finish(std::move(grid), std::move(chunk));
  // A grid has three dimensions: beside a batch blocks of rows are a loop.
  if (grid.size() > 1 && !space_.batch_axes().empty()) {
    chunk = {kb::For(grid[0].index, grid[0].low, grid[0].high, std::move(chunk), grid[0].step)};
    grid.erase(grid.begin());
  }
  grid.insert(grid.begin(), {"s0", kb::Int(0), kb::Int(parts_), 1});
  LoweredRegion lowered;
  QUERN_ASSIGN(KernelUse parts,
               kernel.FinishKernel(std::move(grid), std::move(chunk), {space_.rows(), space_.columns(), space_.k()}));
  QUERN_ASSIGN(KernelUse sum, AddUp());
  lowered.kernels.push_back(std::move(parts));
  lowered.kernels.push_back(std::move(sum));
  lowered.temporaries.push_back(Parts());
  return lowered;
}

StatusOr<KernelUse> SplitSum::AddUp() const {
  ProductKernel kernel(space_, "matmul_sum");
  const std::string parts = kernel.writer().Temporary(0, Parts(), false);
  const kir::ExprRef m = kb::Ref("m0"), n0 = kb::Ref("n0"), c = kb::Ref("c"), s = kb::Ref("s"), zero = kb::Int(0),
                     live = Live(space_.columns(), n0, kSumColumns), sum = kb::At("acc", type_, {c});
  const auto part = [&](const kir::ExprRef& which) { return kb::At(parts, type_, PartAt(kernel, which, m, n0 + c)); };
  const auto each = [&](kir::Block body) { return kb::Vec("c", zero, live, std::move(body)); };
  kir::Block chunk = {
      kb::Alloc("acc", {type_, {Extent(kSumColumns)}, kir::Layout::kRow}),
      each({kernel.Of(kb::Store("acc", {c}, part(zero)))}),
      kb::For("s", kb::Int(1), kb::Int(parts_), {each({kernel.Of(kb::Store("acc", {c}, sum + part(s)))})}),
      each(kernel.Results(m, n0 + c, sum))};
  return kernel.FinishKernel(
      {{"m0", zero, kb::FromExtent(space_.rows()), 1}, {"n0", zero, kb::FromExtent(space_.columns()), kSumColumns}},
      std::move(chunk), {space_.rows(), space_.columns(), Extent(parts_)});
}

}  // namespace quern::codegen
