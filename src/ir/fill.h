// What Pad and Window have where they reach outside of their operand.
#pragma once

#include "ir/op.h"

namespace quern::ir {

// Sets the element to the one of its dtype that is nearest to `value`: the attribute is a double, the element no
// rounding of a result.
inline void Fill(RefTensor& y, int64_t at, double value) {
  if (IsInteger(y.dtype))
    y.SetInteger(at, Saturated(y.dtype, value));
  else
    y.data[at] = y.dtype == DType::kF32 ? static_cast<double>(static_cast<float>(value)) : RoundOnce(y.dtype, value);
}

}  // namespace quern::ir
