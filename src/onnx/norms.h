// Norms that several themes are made of.
#pragma once

#include "onnx/importer.h"

namespace quern::onnx {

// gamma [C] or beta as [C, 1, ..], to broadcast over [N, C, ..].
Value PerChannel(Call& c, Value vector, Value x);

}  // namespace quern::onnx
