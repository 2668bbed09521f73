// A side of a product that is computed on the way: its elements by the axes of k and of what lies across, the columns
// of a right side [K, N] or all rows of a left one [.., K], so that no division is needed where they are of several
// dimensions, as the images of a convolution are:
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

class ComputedSide {
 public:
  enum class Side : uint8_t { kLeft, kRight };
  // The place in dimension `dim` of the value, of those before k and columns.
  using Batch = std::function<kir::ExprRef(size_t dim)>;

  // Of `value`, which is laid out over `space`, as factors of sums that become `result`. All that is given by reference
  // outlives this.
  ComputedSide(const RegionView& view, const family::AxisSpace& space, KernelWriter& writer, ir::Value value, Side side,
               DType result, Batch batch = {});
  // Of the right side of that product.
  explicit ComputedSide(ProductKernel& kernel);

  // Extents of k, outermost first; at least one.
  const std::vector<Extent>& k() const { return k_; }

  // Columns or rows that follow each other along the last of their axes.
  struct Segment {
    kir::ExprRef low, high;  // of that axis
    kir::ExprRef start;      // which one is at 0 there
    kir::Index outer;        // where it is on the other axes
  };
  // Goes through those in [from, from + live) by segments.
  kir::Block Across(const kir::ExprRef& from, const kir::ExprRef& live,
                    const std::function<kir::Block(const Segment& segment)>& body) const;
  // Their extents, outermost first; none where there is one.
  const std::vector<Extent>& across() const { return across_; }
  // All of them with this number along their outer axes, or at that place there.
  Segment Row(const kir::ExprRef& q) const;
  Segment Row(const kir::Index& outer) const;
  // The element at `c` of a segment, and `at` on the axes of k, as a factor.
  kir::ExprRef Element(const Segment& segment, const kir::ExprRef& c, const kir::Index& at);
  // The element of one column or row.
  kir::ExprRef Element(const kir::ExprRef& which, const kir::Index& at);
  // Whether neighbours along k, not across, lie beside each other in memory.
  bool RunsAlongK();

 private:
  kir::ExprRef At(const kir::Index& across, const kir::Index& at);

  const family::AxisSpace& space_;
  const ir::Value value_;
  const DType result_;
  const Batch batch_;
  PointExpr expr_;
  std::vector<int> k_axes_, across_axes_;
  std::vector<Extent> k_, across_;
  size_t batch_dims_ = 0;
};

}  // namespace quern::codegen
