// q_tanh_f32 and q_tanh_f64. tanh(+-0) = +-0, tanh(+-inf) = +-1.
//
// Floats: levels with AVX-512 take it in pieces; elsewhere it is, as of doubles, a quotient of an exponential less 1.
#include "simd/math/exp.h"
#include "simd/math/exp_f64.h"
#include "simd/math/pieces.h"

namespace {

#if HWY_TARGET <= HWY_AVX3

constexpr Pieces kTanh = {
    {1.50038910e+00f, 1.75046539e+00f, 1.99952698e+00f, 2.24876404e+00f, 2.50166321e+00f, 2.74809265e+00f,
     3.00177002e+00f, 3.25155640e+00f, 3.62557983e+00f, 4.12689209e+00f, 4.62774658e+00f, 5.12304688e+00f,
     5.62896729e+00f, 6.12054443e+00f, 6.62557983e+00f, 7.12042236e+00f, 7.87042236e+00f, 8.68834496e+00f,
     0.00000000e+00f, 9.36903954e-02f, 1.56357765e-01f, 2.18839645e-01f, 2.81330109e-01f, 3.43923569e-01f,
     4.37217712e-01f, 5.62946320e-01f, 6.87011719e-01f, 8.12065125e-01f, 9.37519073e-01f, 1.06294250e+00f,
     1.18844604e+00f, 1.31346130e+00f},
    {9.05218542e-01f, 9.41428483e-01f, 9.63994145e-01f, 9.77972329e-01f, 9.86658454e-01f, 9.91828740e-01f,
     9.95072186e-01f, 9.97006953e-01f, 9.98582304e-01f, 9.99479592e-01f, 9.99808848e-01f, 9.99929011e-01f,
     9.99974191e-01f, 9.99990344e-01f, 9.99996483e-01f, 9.99998689e-01f, 9.99999702e-01f, 9.99999940e-01f,
     0.00000000e+00f, 9.34172198e-02f, 1.55095905e-01f, 2.15411827e-01f, 2.74135679e-01f, 3.30975682e-01f,
     4.11335558e-01f, 5.10160208e-01f, 5.96058846e-01f, 6.70727909e-01f, 7.34080315e-01f, 7.86787450e-01f,
     8.30096304e-01f, 8.65148604e-01f},
    {{1.80579573e-01f, 1.13712139e-01f, 7.07149282e-02f, 4.35698219e-02f, 2.65048835e-02f, 1.62756089e-02f,
      9.83125437e-03f, 5.97708020e-03f, 2.83294567e-03f, 1.04038208e-03f, 3.82207130e-04f, 1.41951372e-04f,
      5.16088221e-05f, 1.93091819e-05f, 7.03256273e-06f, 2.61360015e-06f, 5.83304825e-07f, 1.13618775e-07f,
      1.00000000e+00f, 9.91273165e-01f, 9.75945234e-01f, 9.53597724e-01f, 9.24849629e-01f, 8.90455067e-01f,
      8.30803096e-01f, 7.39736736e-01f, 6.44714117e-01f, 5.50124347e-01f, 4.61126328e-01f, 3.80965680e-01f,
      3.10940236e-01f, 2.51517951e-01f},
     {-1.63464949e-01f, -1.07052319e-01f, -6.81691989e-02f, -4.26104479e-02f, -2.61511244e-02f, -1.61428321e-02f,
      -9.78273153e-03f, -5.95916063e-03f, -2.82903970e-03f, -1.03983702e-03f, -3.82121798e-04f, -1.41959143e-04f,
      -5.15984175e-05f, -1.93071537e-05f, -7.02941907e-06f, -2.10165990e-06f, -3.89749317e-07f, 8.71193819e-08f,
      5.81346831e-06f,  -9.26020592e-02f, -1.51364937e-01f, -2.05416203e-01f, -2.53533810e-01f, -2.94719070e-01f,
      -3.41738969e-01f, -3.77384901e-01f, -3.84287000e-01f, -3.68983388e-01f, -3.38503510e-01f, -2.99739540e-01f,
      -2.58110702e-01f, -2.17600584e-01f},
     {8.77265483e-02f,  6.29489273e-02f,  4.22357209e-02f,  2.72261593e-02f,  1.70227326e-02f,  1.06226113e-02f,
      6.48111431e-03f,  3.96374799e-03f,  1.90963864e-03f,  7.03316997e-04f,  2.58650834e-04f,  9.60923280e-05f,
      3.49368747e-05f,  1.30619510e-05f,  4.75252818e-06f,  1.77276183e-06f,  4.08788623e-07f,  8.95989842e-08f,
      -3.33903342e-01f, -3.21586400e-01f, -3.01714122e-01f, -2.73519188e-01f, -2.38730043e-01f, -1.99202046e-01f,
      -1.36395246e-01f, -5.42525537e-02f, 1.38614792e-02f,  6.38141185e-02f,  9.45260301e-02f,  1.08656205e-01f,
      1.10489763e-01f,  1.04352146e-01f},
     {-2.47841701e-02f, -2.34682504e-02f, -1.78963877e-02f, -1.23457415e-02f, -8.06479529e-03f, -5.11599239e-03f,
      -3.18443053e-03f, -1.96206430e-03f, -9.48367349e-04f, -3.51519557e-04f, -1.29678650e-04f, -4.77351277e-05f,
      -1.76243757e-05f, -6.51258870e-06f, -2.40768190e-06f, -8.74187481e-06f, -9.59765543e-07f, -1.89645050e-06f,
      1.58809442e-02f,  6.09987453e-02f,  9.69472602e-02f,  1.27289116e-01f,  1.49360195e-01f,  1.64202124e-01f,
      1.69781819e-01f,  1.53530359e-01f,  1.19456239e-01f,  7.99227133e-02f,  4.33308892e-02f,  1.45229222e-02f,
      -5.55807864e-03f, -1.76669545e-02f}}};

// Of |x|. Beyond 9.02 the result is 1 in single precision.
HWY_INLINE VF Tanh(VF magnitude) {
  const VF x = AtMost(9.02f, magnitude);
  const VI index = hn::ShiftRight<20>(hn::BitCast(kI32, hn::Add(x, Const(0.625f))));  // eight pieces an octave
  return PieceAt(kTanh, index, x, LookUp(kTanh.value, index));
}

#else

// m / (m + 2) with m = exp(2 |x|) - 1, which is right to its last places however small it is. Beyond 9.05 the result
// is 1.
HWY_INLINE VF Tanh(VF magnitude) {
  const Whole e = Reduce(AtMost(18.1f, hn::Add(magnitude, magnitude)));
  const VF power = PowerWithin(e);
  const VF m = hn::MulAdd(MantissaRest(e), power, hn::Sub(power, Const(1.0f)));
  return hn::Div(m, hn::Add(m, Const(2.0f)));
}

#endif

}  // namespace

QUERN_INLINE(Vec, q_tanh_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  return ToRaw(hn::CopySign(Tanh(hn::Abs(x)), x));
}

// m / (m + 2) with m = exp(2 |x|) - 1; beyond 20 the result is 1.
QUERN_INLINE(VecF64, q_tanh_f64)(VecF64 raw) {
  const VD x = FromRaw(raw), magnitude = hn::Min(ConstF64(20), hn::Abs(x));
  const PowerF64 e = SplitExp(hn::Add(magnitude, magnitude));
  const VD power = PowerOfTwo(e.n);
  const VD m = hn::MulAdd(e.rest, power, hn::Sub(power, ConstF64(1)));
  return ToRaw(hn::CopySign(hn::Div(m, hn::Add(m, ConstF64(2))), x));
}
