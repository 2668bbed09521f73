// Functions of the model, whose nodes take the place of a call.
#pragma once

#include "onnx/importer.h"

namespace quern::onnx {

// Its nodes over the operands of the call; results are those of the call.
void CallFunction(Call& call, const format::Function& function);

}  // namespace quern::onnx
