// ArgMax and ArgMin: where a line has its largest or smallest element. A NaN wins over everything, the first of them
// over the others; of equal elements the first wins, or the last.
#pragma once

#include "ir/op.h"

namespace quern::ir {

// The op of that name; `largest`: ArgMax.
const OpDef* ArgFold(const char* name, const char* doc, bool largest);
// The largest of the elements so far, and where it stands: what ArgMax says of each beginning of a line.
const OpDef* LargestSoFar(const char* name, const char* doc);

}  // namespace quern::ir
