// FftFreq and RfftFreq: the frequencies of the results of Fft, and of those that Rfft has.
#pragma once

#include "ir/op.h"

namespace quern::ir {

const OpDef* Frequencies(const char* name, const char* doc, bool real);

}  // namespace quern::ir
