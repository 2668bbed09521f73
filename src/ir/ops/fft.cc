// Fft: sums of x e^(-2 pi i j k / n) along an axis: expands into products with small matrices (ir/fourier.h).

#include "ir/complex_transform.h"

namespace quern::ir {

const OpDef& Op_fft() {
  static const OpDef* const op =
      ComplexTransform("Fft", "the discrete Fourier transform along one axis", /*inverse=*/false,
                       {{{"c64[3, 8]"}, {{"norm", std::string("backward")}}},
                        {{"c64[35, S]"}, {{"axis", int64_t{0}}, {"norm", std::string("ortho")}}},
                        {{"c64[2, 137]"}, {{"norm", std::string("forward")}}}});
  return *op;
}

}  // namespace quern::ir
