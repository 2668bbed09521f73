// FftFreq: the frequencies of the results of Fft, cycles by n d: 0, 1, .. and in the second half .., -2, -1, as numpy's
// fftfreq.

#include "ir/frequencies.h"

namespace quern::ir {

const OpDef& Op_fft_freq() {
  static const OpDef* const op =
      Frequencies("FftFreq", "the frequencies of the results of Fft, as numpy's fftfreq", /*real=*/false);
  return *op;
}

}  // namespace quern::ir
