// RfftFreq: the frequencies of the results of Rfft, cycles by n d: 0 to n / 2, as numpy's rfftfreq.

#include "ir/frequencies.h"

namespace quern::ir {

const OpDef& Op_rfft_freq() {
  static const OpDef* const op =
      Frequencies("RfftFreq", "the frequencies of the results of Rfft, as numpy's rfftfreq", /*real=*/true);
  return *op;
}

}  // namespace quern::ir
