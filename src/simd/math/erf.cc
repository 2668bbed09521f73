// q_erf_f32 and q_erf_f64. erf(+-0) = +-0, erf(+-inf) = +-1.
//
// Floats: levels with AVX-512 take it in pieces. Elsewhere, and of doubles, it is an odd polynomial up to 1, then
// 1 - exp(-q) with a polynomial q.
#include "simd/math/exp.h"
#include "simd/math/exp_f64.h"
#include "simd/math/pieces.h"

namespace {

#if HWY_TARGET <= HWY_AVX3

constexpr Pieces kErf = {
    {7.49809265e-01f, 8.74904633e-01f, 9.99595642e-01f, 1.12582397e+00f, 1.25045013e+00f, 1.37605286e+00f,
     1.50067139e+00f, 1.62455750e+00f, 1.74961090e+00f, 1.87475586e+00f, 1.99986267e+00f, 2.12612915e+00f,
     2.25006104e+00f, 2.37532043e+00f, 2.49810791e+00f, 2.62539673e+00f, 2.81460571e+00f, 3.06187439e+00f,
     3.31269836e+00f, 3.56056213e+00f, 3.81103873e+00f, 0.00000000e+00f, 9.37633514e-02f, 1.56189919e-01f,
     2.18690872e-01f, 2.81476974e-01f, 3.43658447e-01f, 4.06410217e-01f, 4.68526840e-01f, 5.31150818e-01f,
     5.94306946e-01f, 6.55845642e-01f},
    {7.11032987e-01f, 7.84025013e-01f, 8.42532873e-01f, 8.88650239e-01f, 9.23006535e-01f, 9.48349178e-01f,
     9.66184914e-01f, 9.78408098e-01f, 9.86651123e-01f, 9.91981864e-01f, 9.95319426e-01f, 9.97359872e-01f,
     9.98537719e-01f, 9.99218345e-01f, 9.99588907e-01f, 9.99795079e-01f, 9.99931216e-01f, 9.99985099e-01f,
     9.99997199e-01f, 9.99999523e-01f, 9.99999940e-01f, 0.00000000e+00f, 1.05491377e-01f, 1.74818724e-01f,
     2.42888108e-01f, 3.09420347e-01f, 3.73037398e-01f, 4.34540182e-01f, 4.92411315e-01f, 5.47444046e-01f,
     5.99358976e-01f, 6.46336019e-01f},
    {{6.43115282e-01f, 5.24832964e-01f, 4.15443599e-01f, 3.17684501e-01f, 2.36255273e-01f, 1.69867188e-01f,
      1.18690997e-01f, 8.05880651e-02f, 5.28468788e-02f, 3.35764997e-02f, 2.06782781e-02f, 1.22816665e-02f,
      7.14030722e-03f, 4.00034664e-03f, 2.19895784e-03f, 1.14546821e-03f, 4.09077998e-04f, 9.56419826e-05f,
      1.93266023e-05f, 3.51676772e-06f, 5.51559936e-07f, 1.28379151e-01f, 1.11850238e+00f, 1.10118508e+00f,
      1.07568371e+00f, 1.04242837e+00f, 1.00268471e+00f, 9.56583679e-01f, 9.05982614e-01f, 8.51003587e-01f,
      7.92614341e-01f, 7.33922899e-01f},
     {-4.82213259e-01f, -4.59178954e-01f, -4.15275216e-01f, -3.57657343e-01f, -2.95425594e-01f, -2.33746722e-01f,
      -1.78116158e-01f, -1.30920038e-01f, -9.24616754e-02f, -6.29478693e-02f, -4.13538516e-02f, -2.61123329e-02f,
      -1.60661750e-02f, -9.50217713e-03f, -5.49329352e-03f, -3.00734630e-03f, -1.15142588e-03f, -2.92951736e-04f,
      -6.40525977e-05f, -1.25367424e-05f, -7.84042277e-06f, 7.90339800e-06f,  -1.04874507e-01f, -1.71994016e-01f,
      -2.35243052e-01f, -2.93419391e-01f, -3.44580948e-01f, -3.88765335e-01f, -4.24476981e-01f, -4.52011466e-01f,
      -4.71056104e-01f, -4.81339574e-01f},
     {2.64079701e-02f,  9.25436467e-02f,  1.37919500e-01f,  1.62250966e-01f,  1.67297676e-01f,  1.57661602e-01f,
      1.38561741e-01f,  1.14918649e-01f,  9.02637467e-02f,  6.75377324e-02f,  4.83058579e-02f,  3.29789110e-02f,
      2.17717774e-02f,  1.37537280e-02f,  8.44380260e-03f,  4.90190275e-03f,  2.06660898e-03f,  5.81301574e-04f,
      1.39449825e-04f,  2.96927446e-05f,  5.82086341e-06f,  -3.76727134e-01f, -3.66110861e-01f, -3.49070162e-01f,
      -3.24081331e-01f, -2.92376310e-01f, -2.55243748e-01f, -2.13520527e-01f, -1.69392720e-01f, -1.23633921e-01f,
      -7.75898173e-02f, -3.41846049e-02f},
     {1.50551662e-01f,  1.12557396e-01f,  6.92817569e-02f,  2.80627925e-02f,  -6.03611767e-03f, -3.03574465e-02f,
      -4.45248634e-02f, -4.96299826e-02f, -4.80406471e-02f, -4.22430709e-02f, -3.44473347e-02f, -2.63688378e-02f,
      -1.91070307e-02f, -1.31450957e-02f, -8.66119377e-03f, -5.42316353e-03f, -2.52130674e-03f, -7.82029179e-04f,
      -2.07315563e-04f, -4.74708249e-05f, 3.64334439e-04f,  1.46659967e-02f,  5.23283929e-02f,  8.45922530e-02f,
      1.14992410e-01f,  1.38719320e-01f,  1.58600479e-01f,  1.72863632e-01f,  1.80949673e-01f,  1.83638275e-01f,
      1.79981247e-01f,  1.71107620e-01f}}};

// Of |x|. Beyond 3.93 the result is 1 in single precision.
HWY_INLINE VF Erf(VF magnitude) {
  const VF x = AtMost(3.93f, magnitude);
  const VF shifted = hn::Add(x, Const(1.3125f));
  const VI index = hn::ShiftRight<19>(hn::BitCast(kI32, shifted));  // sixteen pieces an octave
  // Near 0 erf is x and something, which keeps what digits x has.
  const MF first = hn::Lt(shifted, Const(1.375f));
  return PieceAt(kErf, index, x, hn::IfThenElse(first, x, LookUp(kErf.value, index)));
}

#else

HWY_INLINE VF Erf(VF magnitude) {
  // In powers of x x - 1/2, whose terms stay small up to |x| = 1, where their rounding counts most.
  const VF shifted = hn::Sub(hn::Mul(magnitude, magnitude), Const(0.5f));
  const VF p = PolyByPairs(shifted, -3.45312618e-02f, -2.81072199e-01f, 7.94100314e-02f, -1.82832759e-02f,
                           3.47970054e-03f, -5.65641094e-04f, 8.01595888e-05f);
  const VF near_zero = hn::MulAdd(p, magnitude, magnitude);
  // Beyond 4 the result is 1 in single precision; the polynomial must not see more.
  const VF t = AtMost(4.0f, magnitude);
  // In powers of |x| - 1, since an error of the exponent counts most there; the greatest term last, to be rounded once.
  const VF u = hn::Sub(t, Const(1.0f));
  const VF slope = PolyByPairs(u, 2.63896751e+00f, 8.43107164e-01f, 4.15627509e-02f, -1.00439461e-02f, 2.00778479e-03f,
                               -2.85936723e-04f, 2.01703588e-05f, 2.47777109e-07f);
  const VF q = hn::MulAdd(slope, u, Const(1.84960556f));
  const VF far = hn::Sub(Const(1.0f), ExpWithin(hn::Neg(q)));
  return hn::IfThenElse(hn::Lt(magnitude, Const(1.0f)), near_zero, far);
}

#endif

}  // namespace

QUERN_INLINE(Vec, q_erf_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  return ToRaw(hn::CopySign(Erf(hn::Abs(x)), x));
}

QUERN_INLINE(VecF64, q_erf_f64)(VecF64 raw) {
  const VD x = FromRaw(raw), magnitude = hn::Abs(x), one = ConstF64(1);
  const VD near_zero =
      hn::MulAdd(magnitude,
                 Poly(hn::Sub(hn::Mul(magnitude, magnitude), ConstF64(0.5)), -0.034531261330132692,
                      -0.28107217804543424, 0.07940998675593483, -0.018283884489152906, 0.003480274496665589,
                      -0.0005611894221159957, 7.8296495255033399e-5, -9.6148086868374103e-6, 1.0536449493012862e-6,
                      -1.0420369437776737e-7, 9.3876424671905857e-9, -7.7985431681423268e-10, 5.9571761477489114e-11),
                 magnitude);
  // In powers of |x| - 1, since an error of the exponent counts most there; beyond 6 the result is 1.
  const VD u = hn::Sub(hn::Min(ConstF64(6), magnitude), one);
  const VD q =
      Poly(u, 1.8496055099332482, 2.6389675142347949, 0.84310725635832746, 0.041561098049380376, -0.010033825462634971,
           0.0019779031986228328, -0.00023732547115646526, -2.6267990577569252e-5, 2.7135509272994771e-5,
           -9.5671762493511819e-6, 2.0042076999507635e-6, -8.6464723543393275e-8, -1.4152970860425963e-7,
           7.846484305037978e-8, -2.7148106745723258e-8, 7.2172671740364378e-9, -1.5518802262158816e-9,
           2.7336407972856537e-10, -3.9309706854245211e-11, 4.5505332308534447e-12, -4.1392677661442282e-13,
           2.8478126848102165e-14, -1.3920849232129403e-15, 4.3048401134980052e-17, -6.3255205887184927e-19);
  const VD far = hn::Sub(one, Exp(hn::Neg(q)));
  return ToRaw(hn::CopySign(hn::IfThenElse(hn::Lt(magnitude, one), near_zero, far), x));
}
