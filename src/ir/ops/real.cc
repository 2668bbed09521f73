// Real: the real part of c64.

#include "ir/pairs.h"

namespace quern::ir {

const OpDef& Op_real() {
  static const OpDef* const op = PartOfComplex("Real", "the real part", /*imaginary=*/false);
  return *op;
}

}  // namespace quern::ir
