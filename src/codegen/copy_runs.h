// Copies of a block as loops of its threads: the last step before an emitter, to which one run of neighbours is left.
//
//   copy xs[0:+64, 0:+32] = x[i:+64, 0:+32]
// becomes
//   thread t in 0..128 @ block { unroll n in 0..2 {
//     let e = t + 128 * n   let row = e / 4   let first = e % 4 * 8
//     copy xs[row, first:+8] = x[i + row, first:+select(i + row < M, 8, 0)]
//   } }
//
// A copy inside of that loop is the thread's own, which KIR proper does not have. Its run begins and ends at multiples
// of its length in both buffers, so that it is inside of `src` or outside as a whole, and zeros are copied then.
// Neighbouring threads take neighbouring runs.
#pragma once

#include "kir/kir.h"

namespace quern::codegen {

// The kernel, scheduled for blocks of `threads`, with all of its copies written out. A run is as long as a power of two
// that `bytes` hold, of dst's dtype, or eight elements of a block format, which share their scale; where rows do not
// begin at such multiples it is one element.
kir::Kernel WriteOutCopies(const kir::Kernel& kernel, int64_t threads, int64_t bytes);

// A copy of a thread: `length` neighbours, or zeros unless `inside`, null where they always are.
struct CopiedRun {
  int64_t length = 1;
  kir::ExprRef inside;
};
CopiedRun RunOf(const kir::Copy& copy);

}  // namespace quern::codegen
