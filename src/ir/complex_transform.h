// Fft and Ifft, which differ in the sign of the exponent and in what `norm` multiplies by.
#pragma once

#include <vector>

#include "ir/op.h"

namespace quern::ir {

const OpDef* ComplexTransform(const char* name, const char* doc, bool inverse, std::vector<Example> examples);

}  // namespace quern::ir
