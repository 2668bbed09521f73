// Products of few chunks and a long k: parts of each sum are chunks of their own, and a second kernel adds them up in
// the order of k and computes what follows.
//
//   kernel matmul      grid s0 in 0..16, n0 in 0..64 by 64 { .. k in s0 * 4096 : +4096 ..; tmp0[s0, m, n0 + j] = .. }
//   kernel matmul_sum  grid m0 in 0..12, n0 in 0..64 by 256 { acc = tmp0[0, ..] + tmp0[1, ..] + ..; y0[m0, ..] = acc }
//
// How many parts there are follows from the columns and k, and of more than kMostRows from how many rows there are at
// least: with any number of threads, and beside any other rows of a form, a row has the same bits.
#pragma once

#include <functional>
#include <vector>

#include "codegen/product_kernel.h"

namespace quern::codegen {

class SplitSum {
 public:
  // Of a product whose long side streams by (LowerStreams): its chunks have so many rows of that.
  static int64_t StreamedRows(const ProductSpace& space);
  static SplitSum OfStreams(const ProductSpace& space);

  // `columns`, `rows`: of a chunk. `step`: parts begin at multiples of so many elements of k; 0: there are none.
  SplitSum(const ProductSpace& space, DType type, int64_t columns, int64_t rows, int64_t step);

  bool splits() const { return parts_ > 1; }
  // k of the part that a chunk is for: [First(), End()), all of k without parts. In units of so many elements, of which
  // steps, and k, have a whole number; where there are parts.
  kir::ExprRef First(int64_t unit = 1) const;
  kir::ExprRef End(int64_t unit = 1) const;
  // Of such a part, at most.
  Extent Most() const;
  // Loops of `over`, which gets the first k of the chunk's part and how many there are: one number for all parts but
  // the last.
  kir::Block Over(const std::function<kir::Block(const kir::ExprRef& first, const Extent& count)>& over) const;

  // What a chunk does with the sum of (row, column), whose part it is: the results of the product where there are none.
  kir::Block Finish(ProductKernel& kernel, const kir::ExprRef& row, const kir::ExprRef& column,
                    const kir::ExprRef& sum) const;
  // The region of `chunk` and its grid, and the kernel that adds up.
  StatusOr<LoweredRegion> Lower(ProductKernel& kernel, std::vector<kir::GridDim> grid, kir::Block chunk) const;

 private:
  kir::BufferType Parts() const;
  kir::Index PartAt(const ProductKernel& kernel, const kir::ExprRef& part, const kir::ExprRef& row,
                    const kir::ExprRef& column) const;
  StatusOr<KernelUse> AddUp() const;

  const ProductSpace& space_;
  const DType type_;  // of sums
  int64_t parts_ = 1, depth_ = 0;
};

}  // namespace quern::codegen
