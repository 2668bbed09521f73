#include "codegen/product_kernel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/loops.h"
#include "ir/shape.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::Value;

namespace {

constexpr int64_t kShortProducts = 1 << 17;  // multiplications that are not worth sharing among threads

std::string NameOf(int axis) { return absl::StrCat("i", axis); }

}  // namespace

kir::ExprRef Factor(const kir::ExprRef& element, DType result) {
  return IsInteger(result) ? kb::CastTo(result, element) : ir::Widened(element);
}

ProductKernel::ProductKernel(const ProductSpace& space, std::string name)
    : space_(space), writer_(space.view(), std::move(name)) {
  for (const int operand : {0, 1}) {
    const int input = view().InputIndex(space.Source(operand));
    if (!space.InMemory(operand) || input < 0) continue;
    if (operand == 1 && space.in_panels()) {
      writer_.DeclareAs(input, space.MemoryDims(operand), kir::Layout::kKn32, DType::kU32);
    } else {
      writer_.DeclareAs(input, space.MemoryDims(operand));
    }
  }
  results_.emplace(view(), space.results(), writer_);
}

kir::ExprRef ProductKernel::BatchIndex(int dim) const {
  kir::ExprRef index = kb::Int(0);
  for (const int axis : space_.results().Find({space_.root(), 0})->dims[dim])
    index = index * kb::FromExtent(space_.results().extents()[axis]) + kb::Ref(NameOf(axis));
  return index;
}

kir::Index ProductKernel::BatchLoops() const {
  kir::Index loops;
  for (const int axis : space_.batch_axes()) loops.push_back(kb::Ref(NameOf(axis)));
  return loops;
}

kir::Index ProductKernel::BatchOf(int operand) {
  kir::Index index;
  if (const auto& picked = space_.picked(); operand == 1 && picked) {
    const kir::ExprRef which =
        kb::At(writer_.Input(view().InputIndex(picked->index)), view().type(picked->index).dtype, {BatchIndex(0)});
    index.push_back(
        ir::IndexInside(kb::CastTo(DType::kI64, which), kb::FromExtent(view().type(picked->table).dims[0])));
  }
  for (const int dim : space_.BatchDims(operand)) index.push_back(BatchIndex(dim));
  return index;
}

kir::Slice ProductKernel::Rectangle(int operand, kir::SliceDim first, kir::SliceDim second) {
  std::vector<kir::SliceDim> dims;
  for (const kir::ExprRef& at : BatchOf(operand)) dims.push_back(kb::Point(at));
  dims.push_back(std::move(first));
  dims.push_back(std::move(second));
  return kb::SliceOf(writer_.Input(view().InputIndex(space_.Source(operand))), std::move(dims));
}

kir::ExprRef ProductKernel::Left(const kir::ExprRef& row, const kir::ExprRef& k) {
  kir::Index at = BatchOf(0);
  at.push_back(row);
  at.push_back(k);
  return Factor(kb::At(writer_.Input(view().InputIndex(space_.Source(0))), space_.dtype(0), std::move(at)),
                space_.node().results[0].dtype);
}

kir::ExprRef ProductKernel::Right(const kir::ExprRef& k, const kir::ExprRef& column) {
  kir::Index at = BatchOf(1);
  at.push_back(space_.transposed() ? column : k);
  at.push_back(space_.transposed() ? k : column);
  return Factor(kb::At(writer_.Input(view().InputIndex(space_.Source(1))), space_.dtype(1), std::move(at)),
                space_.node().results[0].dtype);
}

void ProductKernel::MoveTo(const kir::ExprRef& row, const kir::ExprRef& column) {
  PointExpr::Point point(space_.results().extents().size());
  for (const int axis : space_.batch_axes()) point[axis] = kb::Ref(NameOf(axis));
  if (space_.row_axis() >= 0) point[space_.row_axis()] = row;
  if (space_.column_axis() >= 0) point[space_.column_axis()] = column;
  results_->MoveTo(std::move(point));
}

std::vector<kir::Slice> ProductKernel::ResultRectangles(const kir::SliceDim& rows, const kir::SliceDim& columns) {
  MoveTo(kb::Ref("row"), kb::Ref("column"));
  std::vector<std::pair<std::string, kir::Index>> places;
  for (size_t o = 0; o < view().results().size(); ++o) places.push_back(results_->ResultAt(static_cast<int>(o)));
  const family::AxisSpace& axes = space_.results();
  const size_t all = axes.Find({space_.root(), 0})->Axes().size();
  for (size_t i = 0; i < view().inputs().size(); ++i) {
    const family::AxisSpace::Place* place = axes.Find({view().inputs()[i], 0});
    if (place == nullptr || place->pinned || place->Axes().size() != all) continue;
    kir::Index at;
    for (const int axis : place->Axes()) at.push_back(results_->point()[axis]);
    places.emplace_back(writer_.Input(static_cast<int>(i)), std::move(at));
  }
  std::vector<kir::Slice> slices;
  for (auto& [buffer, index] : places) {
    std::vector<kir::SliceDim> dims;
    for (const kir::ExprRef& at : index) {
      const bool row = space_.row_axis() >= 0 && at == results_->point()[space_.row_axis()],
                 column = space_.column_axis() >= 0 && at == results_->point()[space_.column_axis()];
      dims.push_back(row ? rows : column ? columns : kb::Point(at));
    }
    slices.push_back(kb::SliceOf(std::move(buffer), std::move(dims)));
  }
  return slices;
}

kir::Block ProductKernel::Results(const kir::ExprRef& row, const kir::ExprRef& column, const kir::ExprRef& sum) {
  MoveTo(row, column);
  const kir::ExprRef product = kb::CastTo(space_.node().results[0].dtype, sum);
  results_->Provide({space_.root(), 0}, [product](const PointExpr::Point&) { return product; });
  kir::Block block;
  for (size_t o = 0; o < view().results().size(); ++o) block.push_back(results_->StoreResult(static_cast<int>(o)));
  return block;
}

StatusOr<LoweredRegion> ProductKernel::Finish(std::vector<kir::GridDim> inner, kir::Block chunk) {
  LoweredRegion lowered;
  QUERN_ASSIGN(KernelUse use,
               FinishKernel(std::move(inner), std::move(chunk), {space_.rows(), space_.columns(), space_.k()}));
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

StatusOr<KernelUse> ProductKernel::FinishKernel(std::vector<kir::GridDim> inner, kir::Block chunk,
                                                const std::vector<Extent>& inside) {
  const std::vector<int>& axes = space_.batch_axes();
  const std::vector<Extent> batch = space_.batch();
  for (size_t b = axes.size(); b-- > 1;)
    chunk = {kb::For(NameOf(axes[b]), kb::Int(0), kb::FromExtent(batch[b]), std::move(chunk))};
  kir::Kernel& kernel = writer_.kernel;
  if (!axes.empty()) kernel.grid.push_back({NameOf(axes[0]), kb::Int(0), kb::FromExtent(batch[0]), 1});
  kernel.grid.insert(kernel.grid.end(), std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
  kernel.body = std::move(chunk);
  std::vector<Extent> all = batch;
  all.insert(all.end(), inside.begin(), inside.end());
  kernel.sequential = BoundedElements(all, view().ranges) <= kShortProducts;
  return writer_.Finish();
}

}  // namespace quern::codegen
