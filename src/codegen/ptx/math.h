// Functions the machine has not, in KIR: a table of kernels over single elements, whose statements the emitter puts
// where the function is called. `log` and the like inside them are functions of the table again; the machine has exp2
// of f32 (to 2 ulp), sqrt, division, fma, rounding to integers and conversions.
//
//   QUERN_ASSIGN(const kir::Kernel* log, library.Find(kir::Op::kLog, DType::kF32));   // log(a[]) goes to y[]
#pragma once

#include <map>

#include "base/status.h"
#include "kir/kir.h"

namespace quern::ptx {

class MathLibrary {
 public:
  // Of f32 or f64, parsed once; parameters a, for two operands b, and y. Unimplemented for what has no row.
  StatusOr<const kir::Kernel*> Find(kir::Op op, DType dtype);

 private:
  std::map<std::pair<kir::Op, DType>, kir::Kernel> parsed_;
};

}  // namespace quern::ptx
