// What a kernel does, counted from its text: float operations, operations of integer dot products, and the distinct
// bytes of each parameter that it touches. The figures a profile divides by time.
//
//   QUERN_ASSIGN(const KernelCost cost, CostOf(kernel, {{"M", 7}}));
//   cost.flops / seconds;  cost.params[0].read
//
// Operations are trips of the loops times what the bodies compute:
//   - a float +, -, *, /, %, min, max, rounding or math function is one, fma two; a reduction adds one a trip; signs,
//     comparisons, selects, casts and integers (indices) are none, decoding and packing none;
//   - a tile op is what its row says (TileOp::work) for the live sizes; the expansion of its meaning does not count.
// Bytes: an access inside loops covers a box, whose sides run from the smallest to the largest index; a parameter's
// bytes are those in the union of its boxes, at most all of it. A step that all accesses to a parameter share in a
// dimension leaves out the rows between, and of the last dimension whole lines of 64 bytes. An index that is data
// (Gather) covers as many rows as there are values for it, at most the range it is clamped to, and the gathers of one
// parameter are taken to name the same rows. Where control depends on data, both ways count, and a loop runs as far as
// it may.
#pragma once

#include <cstdint>
#include <vector>

#include "base/extent.h"
#include "base/status.h"
#include "kir/kir.h"

namespace quern::kir {

struct KernelCost {
  struct Traffic {
    int64_t read = 0, written = 0;  // distinct bytes
  };
  double flops = 0;
  double bf16_ops = 0;          // multiplications and additions of products of bf16 by bf16, in tiles
  double int8_ops = 0;          // likewise, of integer dot products
  std::vector<Traffic> params;  // in the kernel's order
  std::vector<double> origins;  // operations of all kinds by row of Kernel::origins
  bool estimate = false;  // an upper bound: control or an index depends on data, or there are too many trips to look at

  double operations() const { return flops + bf16_ops + int8_ops; }
  int64_t read() const;
  int64_t written() const;
};

// For kernels that verify. Errors: an unbound or out-of-range symbol; an expression that the rules of KIR do not allow.
StatusOr<KernelCost> CostOf(const Kernel& kernel, const Binding& binding);

}  // namespace quern::kir
