// Ifft: sums of x e^(2 pi i j k / n) along an axis, divided by n: expands as Fft does.

#include "ir/complex_transform.h"

namespace quern::ir {

const OpDef& Op_ifft() {
  static const OpDef* const op =
      ComplexTransform("Ifft", "the inverse of Fft", /*inverse=*/true,
                       {{{"c64[3, 8]"}, {{"norm", std::string("none")}}},
                        {{"c64[77, S]"}, {{"axis", int64_t{0}}, {"norm", std::string("ortho")}}},
                        {{"c64[2, 64]"}, {{"norm", std::string("backward")}}}});
  return *op;
}

}  // namespace quern::ir
