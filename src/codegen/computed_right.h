// The right side of a product that is computed on the way, [K, N]: its elements by the axes of k and of the columns, so
// that no division is needed where both are of several dimensions, as the images of a convolution are:
//
//   for q in n0 / 56 .. {                        segments of columns: what lies in one row of the image
//     for k0 in 0..64 { for k1 in 0..3 { for k2 in 0..3 {
//       vec c in max(0, n0 - q * 56) .. {  .. x0[i0, k0, q + k1 - 1, c + k2 - 1] else 0 .. }
//     }}}
//   }
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/product_kernel.h"

namespace quern::codegen {

class ComputedRight {
 public:
  // Of a product whose right side is not in memory.
  explicit ComputedRight(ProductKernel& kernel);

  // Extents of k, outermost first; at least one.
  const std::vector<Extent>& k() const { return k_; }

  // Columns that follow each other along the last of their axes.
  struct Segment {
    kir::ExprRef low, high;  // of that axis
    kir::ExprRef start;      // the column at 0 there
    kir::Index outer;        // where it is on the other axes
  };
  // Goes through columns [from, from + live) by segments.
  kir::Block Columns(const kir::ExprRef& from, const kir::ExprRef& live,
                     const std::function<kir::Block(const Segment& segment)>& body) const;
  // Extents of the columns, outermost first; none for one column.
  const std::vector<Extent>& columns() const { return columns_; }
  // All columns with this number along their outer axes.
  Segment Row(const kir::ExprRef& q) const;
  // The element at `c` of a segment, and `at` on the axes of k, as a factor.
  kir::ExprRef Element(const Segment& segment, const kir::ExprRef& c, const kir::Index& at);
  // The element of one column.
  kir::ExprRef Element(const kir::ExprRef& column, const kir::Index& at);
  // Whether neighbours along k, not along columns, lie beside each other in memory.
  bool RunsAlongK();

 private:
  kir::ExprRef At(const kir::Index& columns, const kir::Index& at);

  ProductKernel& kernel_;
  const family::AxisSpace& space_;
  PointExpr expr_;
  std::vector<int> k_axes_, column_axes_;
  std::vector<Extent> k_, columns_;
};

}  // namespace quern::codegen
