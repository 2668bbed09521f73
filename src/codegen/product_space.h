// One product of operands that lie in memory in any order or are computed on the way, as batches of rows times columns
// over k: the axes of its operands and of what is computed from it.
//
//   a [2, 3, M, K] x b [1, 3, N, K] -> y [2, 3, M, N]:  batch i0, i1;  a at [i0, i1, m, k], b at [i1, n, k]
//   a [8, 128, K] x b [K, N]: the rows of all batches are one matrix's, m in 0..1024
//   x [6, 1, K] x Gather(w [E, K, N], which [6]): the right side of batch i0 is w[which[i0]], where it lies
//   w [64, 27] x Reshape(Window(x) [3, 3, 3, 56, 56]) [27, 3136] -> Reshape [64, 56, 56]:  the right side is computed,
//     its k has the axes 3, 3, 3, its columns 56, 56
#pragma once

#include <optional>
#include <vector>

#include "family/axis_space.h"
#include "family/region_view.h"

namespace quern::codegen {

class ProductSpace {
 public:
  // The only product of `view`. `view` outlives this.
  explicit ProductSpace(const family::RegionView& view);
  // Why the nodes are not just the product, a right side that is computed on the way, and what is computed from the
  // product element by element.
  Status Check() const;

  const family::RegionView& view() const { return view_; }
  int root() const { return root_; }
  const ir::Node& node() const { return node_; }
  const ir::TensorType& type(int operand) const { return view_.type(node_.inputs[operand]); }
  DType dtype(int operand) const { return type(operand).dtype; }
  bool transposed() const { return transposed_; }  // the right side is [N, K]
  bool in_panels() const { return in_panels_; }    // or lies in panels of words
  const Extent& rows() const { return rows_; }
  const Extent& columns() const { return columns_; }
  const Extent& k() const { return k_; }
  // Extents around rows and columns; none where batches are rows.
  std::vector<Extent> batch() const;
  // Floats of at most 32 bits on both sides, and in the result.
  bool IsOfShortFloats() const;
  bool IsOfDoubles() const;
  bool IsOfBytes() const;  // on both sides
  // Of the sums of one of those three.
  DType SumType() const { return IsOfBytes() ? DType::kI32 : IsOfDoubles() ? DType::kF64 : DType::kF32; }

  // Of the product and all that is computed from it. In the product, rows and columns are an axis each (-1: one row).
  const family::AxisSpace& results() const { return results_; }
  int row_axis() const { return row_axis_; }
  int column_axis() const { return column_axis_; }
  const std::vector<int>& batch_axes() const { return batch_axes_; }

  // A right side that is one slice of `table` for each element of `index`, along the outermost dimension.
  struct Picked {
    ir::Value table, index;
  };
  const std::optional<Picked>& picked() const { return picked_; }
  // What an operand is in memory, with other extents perhaps.
  ir::Value Source(int operand) const {
    return operand == 1 && picked_ ? picked_->table : view_.BeforeReshapes(node_.inputs[operand]);
  }
  bool InMemory(int operand) const { return !view_.Has(Source(operand).node); }
  // Whether operands in memory are buffers, no numbers that are written out.
  bool HasBuffers() const;
  // The extents that such an operand is declared with: batches of more than one, and its last two dimensions; of panels
  // the 32 columns, and the words of all of them.
  std::vector<Extent> MemoryDims(int operand) const;
  // Dimensions of the result that the leading ones of the operand line up with, but for those of 1 and the one that a
  // right side is picked along.
  std::vector<int> BatchDims(int operand) const;
  // The axes of a right side that is not in memory.
  const std::optional<family::AxisSpace>& computed() const { return computed_; }

 private:
  std::optional<Picked> FindPicked() const;
  bool JoinRows();
  Status CheckResults() const;
  Status CheckComputed(const std::vector<bool>& depends) const;
  Status CheckInputs() const;

  const family::RegionView& view_;
  const int root_;
  const ir::Node& node_;
  const bool in_panels_, transposed_;
  const std::optional<Picked> picked_;
  Extent rows_;
  const Extent columns_, k_;
  family::AxisSpace results_;
  bool joined_ = false;
  int row_axis_ = -1, column_axis_ = -1;
  std::vector<int> batch_axes_;
  bool one_axis_each_ = true;
  std::optional<family::AxisSpace> computed_;
};

}  // namespace quern::codegen
