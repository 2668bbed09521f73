// What the kernels of a product of operands in any order (product_space.h) are written with: its operands and results
// as slices and as elements, and the grid around a chunk.
#pragma once

#include "codegen/point_expr.h"
#include "codegen/product_space.h"

namespace quern::codegen {

// An element as a factor of sums that become `result`: integers are multiplied as that, halves as f32.
kir::ExprRef Factor(const kir::ExprRef& element, DType result);

class ProductKernel {
 public:
  explicit ProductKernel(const ProductSpace& space, std::string name = "matmul");
  ProductKernel(const ProductKernel&) = delete;
  ProductKernel& operator=(const ProductKernel&) = delete;

  const ProductSpace& space() const { return space_; }
  const RegionView& view() const { return space_.view(); }
  KernelWriter& writer() { return writer_; }
  // With the product as its origin.
  kir::StmtRef Of(const kir::StmtRef& stmt) { return kir::build::WithOrigin(stmt, writer_.Origin(space_.root())); }

  // A rectangle of the last two dimensions of an operand in memory.
  kir::Slice Rectangle(int operand, kir::SliceDim first, kir::SliceDim second);
  // Of the same as a factor: element (row, k) of the left side, and (k, column) of the right one.
  kir::ExprRef Left(const kir::ExprRef& row, const kir::ExprRef& k);
  kir::ExprRef Right(const kir::ExprRef& k, const kir::ExprRef& column);
  // The place in a dimension of the product's result, of those before rows and columns.
  kir::ExprRef BatchIndex(int dim) const;
  // The loops over the batch that a chunk is in.
  kir::Index BatchLoops() const;

  // Rows and columns of every result, and of what else is read element by element where results are stored.
  std::vector<kir::Slice> ResultRectangles(const kir::SliceDim& rows, const kir::SliceDim& columns);
  // Stores every result at (row, column), where the product is `sum`.
  kir::Block Results(const kir::ExprRef& row, const kir::ExprRef& column, const kir::ExprRef& sum);

  // The kernel whose grid is the first axis of the batch, and `inner`; further ones are loops around the chunk.
  StatusOr<LoweredRegion> Finish(std::vector<kir::GridDim> inner, kir::Block chunk);
  // The same as one kernel of several. `inside`: the extents of the loops inside a batch.
  StatusOr<KernelUse> FinishKernel(std::vector<kir::GridDim> inner, kir::Block chunk,
                                   const std::vector<Extent>& inside);

 private:
  kir::Index BatchOf(int operand);
  void MoveTo(const kir::ExprRef& row, const kir::ExprRef& column);

  const ProductSpace& space_;
  KernelWriter writer_;
  std::optional<PointExpr> results_;
};

}  // namespace quern::codegen
