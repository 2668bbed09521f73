// One product of operands that lie in memory in any order, as batches of rows times columns over k: where its operands'
// and results' elements are, and the loops around a chunk. What the forms of such a product have in common.
//
//   a [2, 3, M, K] x b [1, 3, N, K] -> y [2, 3, M, N]:  batch i0, i1;  a at [i0, i1, m, k], b at [0, i1, n, k]
//   a [8, 128, K] x b [K, N]: the rows of all batches are one matrix's, m in 0..1024
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_writer.h"

namespace quern::codegen {

class ProductSpace {
 public:
  // The only product of `view`, with elementwise ops of its extents after it (MatchMatmul).
  explicit ProductSpace(const RegionView& view);

  const RegionView& view() const { return view_; }
  int root() const { return root_; }
  const ir::Node& node() const { return node_; }
  DType dtype(int operand) const { return type(operand).dtype; }
  bool transposed() const { return transposed_; }  // the right side is [N, K]
  const Extent& rows() const { return rows_; }
  const Extent& columns() const { return columns_; }
  const Extent& k() const { return k_; }
  // Extents around rows and columns; 1 where batches are rows.
  std::vector<Extent> batch() const { return {dims_.begin(), dims_.end() - 2}; }
  // Floats of at most 32 bits on both sides, and in the result.
  bool IsOfShortFloats() const;

  // Declares buffers with the extents above; before anything else is written.
  void Declare(KernelWriter& writer) const;
  std::string Operand(KernelWriter& writer, int operand) const;
  std::string Result(KernelWriter& writer, int output) const;
  // The batch's place in an operand (0, 1), and in the result.
  kir::Index BatchOf(int operand) const { return BatchOf(type(operand).dims); }
  kir::Index BatchOfResult() const { return BatchOf(node_.results[0].dims); }
  // A rectangle of an operand's or the result's last two dimensions.
  static kir::Slice Rectangle(std::string buffer, const kir::Index& batch, kir::SliceDim first, kir::SliceDim second);
  // Element (row, k) of the left side and (k, column) of the right one, as f32.
  kir::ExprRef Left(FusedExpr& expr, const kir::ExprRef& row, const kir::ExprRef& k) const;
  kir::ExprRef Right(FusedExpr& expr, const kir::ExprRef& k, const kir::ExprRef& column) const;
  // Stores every result at (row, column), where the product is `sum`.
  kir::Block Results(KernelWriter& writer, FusedExpr& expr, const kir::ExprRef& row, const kir::ExprRef& column,
                     const kir::ExprRef& sum) const;
  // The kernel's grid: the first dimension of the batch, and `inner`; further ones are loops around the chunk.
  void EmitGrid(kir::Kernel& kernel, std::vector<kir::GridDim> inner, kir::Block chunk) const;

 private:
  const ir::TensorType& type(int operand) const { return view_.type(node_.inputs[operand]); }
  kir::Index BatchOf(const std::vector<Extent>& dims) const;
  bool HasRows(const std::vector<Extent>& dims) const;
  bool RowsJoin() const;

  const RegionView& view_;
  const int root_;
  const ir::Node& node_;
  const bool transposed_;
  std::vector<Extent> dims_;  // of the product; joined rows are in the last but one
  Extent rows_;
  const Extent columns_, k_;
  bool joined_ = false;
};

}  // namespace quern::codegen
