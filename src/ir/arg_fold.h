// ArgMax and ArgMin: where a line has its largest or smallest element. A NaN wins over everything, the first of them
// over the others; of equal elements the first wins, or the last.
#pragma once

#include "ir/op.h"

namespace quern::ir {

// The op of that name; `largest`: ArgMax.
const OpDef* ArgFold(const char* name, const char* doc, bool largest);

}  // namespace quern::ir
