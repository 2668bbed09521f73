// Floats of 8, 6 and 4 bits, as the Open Compute Project's tables have them, one code a byte, in its low bits:
//
//   e4m3  no infinities; NaN is S.1111.111 alone, the largest 448        e5m2  as IEEE 754 says, the largest 57344
//   e3m2  the largest 28    e2m3  the largest 7.5    e2m1  the largest 6: numbers alone, of 6, 6 and 4 bits
//   e8m0  2^(code - 127), NaN 255: scales of blocks, which have no sign
#pragma once

#include <string>
#include <vector>

#include "ir/composite.h"

namespace quern::ir {

struct SmallFloat {
  const char* name;
  int bits, mantissa;
  double largest;
  int nan = -1;       // its code, or -1: there is none
  int infinity = -1;  // the same
  int codes() const { return 1 << bits; }
  // The largest code of a number, or of infinity where there is one.
  int last() const { return infinity >= 0 ? infinity : nan >= 0 ? nan - 1 : codes() / 2 - 1; }
};
// The names of those that numbers are stored as, and one by its name, or that of scales, which is one of them.
std::vector<const char*> SmallFloats();
const SmallFloat& FindSmallFloat(const std::string& name);
extern const SmallFloat kE4m3, kE5m2, kE2m1, kE8m0;

// The value of a code.
double ValueOf(const SmallFloat& format, int code);
// The values of codes, of any integer dtype, in f32 or f64.
Value DecodedFloats(Expansion& e, Value codes, const SmallFloat& format, DType dtype);

// Scales beside such numbers: floats, or codes in u8 of the attribute that ScaleFormat declares. Their values in
// `dtype`, and the one at a position.
AttrDef ScaleFormat();
Status CheckScaleDType(const InferContext& context, int operand);
Value ScaleFloats(Expansion& e, Value scale, const Attributes& attributes, DType dtype);
double ScaleFloat(const RefTensor& scale, int64_t at, const Attributes& attributes);

}  // namespace quern::ir
