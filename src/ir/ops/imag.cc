// Imag: the imaginary part of c64.

#include "ir/pairs.h"

namespace quern::ir {

const OpDef& Op_imag() {
  static const OpDef* const op = PartOfComplex("Imag", "the imaginary part", /*imaginary=*/true);
  return *op;
}

}  // namespace quern::ir
