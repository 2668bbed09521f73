// The table of math functions. Their accuracy is in docs/targets.md, and measured by tests/run/ptx_test.py.
//
// poly(x; c0, c1, ...) is c0 + x (c1 + x (...)) in fused steps. Constants named HI and LO are two parts of one, the
// first with so few bits that its products are exact, or all of them where a fused step cancels. Coefficients of f32
// are fitted (tools/fit_math.py), those of f64 series that are long enough.
#include "codegen/ptx/math.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace quern::ptx {
namespace {

using kir::Op;

struct MathRow {
  Op op;
  DType dtype;
  const char* body;
};

// A sign of `a` for what is not negative.
#define QUERN_SIGNED_F32(value, of) "y[] = bits<f32>(bits<u32>(" value ") | bits<u32>(" of ") & 2147483648u32)\n"
#define QUERN_SIGNED_F64(value, of) "y[] = bits<f64>(bits<u64>(" value ") | (bits<u64>(" of ") >> 63u64) << 63u64)\n"

// x = 2^n (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); the bits above sqrt(1/2)'s, taken as a count of binades, round n that
// way.
#define QUERN_SPLIT_F32(of) \
  "let x = " of R"(
  let tiny = x < 1.17549435e-38
  let scaled = bits<i32>(select(tiny, x * 16777216.0, x))
  let k = (scaled - 1060439283i32) >> 23i32
  let f = bits<f32>(scaled - (k << 23i32)) - 1.0
  let n = cast<f32>(k) - select(tiny, 24.0, 0.0)
)"
#define QUERN_SPLIT_F64(of) \
  "let x = " of R"(
  let tiny = x < 2.2250738585072014e-308
  let scaled = bits<i64>(select(tiny, x * 18014398509481984.0, x))
  let k = (scaled - 4604544271217802189) >> 52
  let f = bits<f64>(scaled - (k << 52)) - 1.0
  let n = cast<f64>(k) - select(tiny, 54.0, 0.0)
  let s = f / (2.0 + f)
  let z = s * s
  let half = 0.5 * f * f
  let tail = s * (half + z * poly(z; 0.6666666666666666, 0.4, 0.2857142857142857, 0.2222222222222222,
             0.18181818181818182, 0.15384615384615385, 0.13333333333333333, 0.11764705882352941, 0.10526315789473684,
             0.09523809523809523, 0.08695652173913043))
)"
// -inf at 0, NaN below, inf and NaN themselves.
#define QUERN_LOG_LIMITS "y[] = select(x == 0.0, -inf, select(x < 0.0, nan, select(x < inf, r, x)))\n"
// What rounding takes from x = 1 + a, as a part of x. The interpreter rounds at bits and stores alone, which is why f32
// makes x of its bits.
#define QUERN_LOST_OF_SUM \
  R"(
  let most = x - 1.0
  let lost = ((1.0 - (x - most)) + (a[] - most)) / x
)"
#define QUERN_LOG1P_LIMITS \
  "y[] = select(abs(a[]) < 2.9802322e-08, a[], select(x == 0.0, -inf, select(x < 0.0, nan, select(x < inf, r, x))))\n"
// e^a - 1 = 2^n m + (2^n - 1), by halves, as 2^n may lie outside the range; itself where a is that small.
#define QUERN_EXPM1(least) "let part = fma(m, half, half - 0.5)\ny[] = select(abs(a[]) < " least ", a[], part + part)\n"

// a = q pi/2 + r, |r| <= pi/4. Past 2^51 the quadrant is lost: r is then held to where the polynomials are bounded.
#define QUERN_QUADRANT_F32 \
  R"(
  let x = a[]
  var r : f32 = 0.0
  var q : i32 = 0
  if abs(x) < 100000.0 {
    let n = round(x * 0.63661975)
    r := fma(n, 1.7151245100058819e-15, fma(n, 4.371138828673793e-08, fma(n, -1.5707963705062866, x)))
    q := cast<i32>(n)
  } else {
    let wide = cast<f64>(x)
    let m = round(wide * 0.6366197723675814)
    r := min(max(cast<f32>(fma(m, -6.123233995736766e-17, fma(m, -1.5707963267948966, wide))), -1.0), 1.0)
    q := cast<i32>(cast<i64>(m) & 3)
  }
  let s = r * r
  let sine = fma(s * r, poly(s; -1.66666552e-01, 8.33218917e-03, -1.95182918e-04), r)
  let cosine = fma(s * s, poly(s; 4.16666456e-02, -1.38873095e-03, 2.44323273e-05), fma(s, -0.5, 1.0))
)"
#define QUERN_QUADRANT_F64 \
  R"(
  let x = a[]
  let m = round(x * 0.6366197723675814)
  let near = fma(m, -6.123233995736766e-17, fma(m, -1.5707963267948966, x))
  let r = min(max(near, -1.0), 1.0)
  let q = cast<i32>(cast<i64>(m) & 3)
  let s = r * r
  let sine = fma(s * r, poly(s; -0.16666666666666666, 0.008333333333333333, -0.0001984126984126984,
             2.7557319223985893e-06, -2.505210838544172e-08, 1.6059043836821613e-10, -7.647163731819816e-13,
             2.8114572543455206e-15), r)
  let cosine = fma(s * s, poly(s; 0.041666666666666664, -0.001388888888888889, 2.48015873015873e-05,
               -2.755731922398589e-07, 2.08767569878681e-09, -1.1470745597729725e-11,
               4.779477332387385e-14), fma(s, -0.5, 1.0))
)"
// The sign of zero is kept where the result has it.
#define QUERN_SINE                                       \
  "let value = select(q & 1i32 == 0i32, sine, cosine)\n" \
  "y[] = select(x == 0.0, x, select(q & 2i32 == 0i32, value, -value))\n"
#define QUERN_COSINE                                     \
  "let value = select(q & 1i32 == 0i32, cosine, sine)\n" \
  "y[] = select((q + 1i32) & 2i32 == 0i32, value, -value)\n"
#define QUERN_TANGENT            \
  "let odd = q & 1i32 != 0i32\n" \
  "y[] = select(x == 0.0, x, select(odd, -cosine, sine) / select(odd, sine, cosine))\n"

// atan of t in [0, 1] as `angle`. f64: from the nearest of 0, pi/8 and pi/4.
#define QUERN_ANGLE_F32 \
  R"(
  let s = t * t
  let angle = fma(s * t, poly(s; -3.33332986e-01, 1.99985296e-01, -1.42640159e-01, 1.09508805e-01, -8.39930624e-02,
                       5.78813925e-02, -3.10970023e-02, 1.08687095e-02, -1.78283197e-03), t)
)"
#define QUERN_ANGLE_F64 \
  R"(
  let far = 0.6681786379192989 < t
  let off = 0.198912367379658 < t
  let u = select(far, (t - 1.0) / (t + 1.0),
                 select(off, (t - 0.41421356237309503) / fma(t, 0.41421356237309503, 1.0), t))
  let s = u * u
  let more = s * u * poly(s; -0.3333333333333333, 0.2, -0.14285714285714285, 0.1111111111111111, -0.09090909090909091,
             0.07692307692307693, -0.06666666666666667, 0.058823529411764705, -0.05263157894736842,
             0.047619047619047616, -0.043478260869565216)
  let angle = select(far, 0.7853981633974483, select(off, 0.39269908169872414, 0.0)) +
              (u + (more + select(far, 3.061616997868383e-17, select(off, 3.060132146563891e-18, 0.0))))
)"
// Of the quotient of the smaller and the larger of |a| and |b|: 1 for two infinities, 0 for two zeros.
#define QUERN_QUOTIENT \
  R"(
  let rise = abs(a[])
  let run = abs(b[])
  let steep = run < rise
  let large = select(steep, rise, run)
  let small = select(steep, run, rise)
  let t = select(large == 0.0, 0.0, select(small == large, 1.0, small / large))
)"

// 2^n by two factors, as 2^n itself may lie outside the range.
#define QUERN_POWER_F64(value, n) \
  "let whole = cast<i64>(" n      \
  ")\n let part = whole >> 1\n"   \
  "y[] = " value " * bits<f64>((part + 1023) << 52) * bits<f64>((whole - part + 1023) << 52)\n"
#define QUERN_EXP_TERMS                                                                                    \
  "1.0, 1.0, 0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333, 0.001388888888888889, " \
  "0.0001984126984126984, 2.48015873015873e-05, 2.7557319223985893e-06, 2.755731922398589e-07, "           \
  "2.505210838544172e-08, "                                                                                \
  "2.08767569878681e-09, 1.6059043836821613e-10"

// What pow says of zeros, infinities, NaN and negative a (C99, F.9.4.4), about `power` = |a|^b where that is regular.
#define QUERN_POW_LIMITS(whole) \
  R"(
  let product = select(base == 0.0, -inf, base) * b[]
  let limit = select(0.0 < product, inf, select(product < 0.0, 0.0, product))
  let size = abs(b[])
  let integral = (round(b[]) == b[]) | (size >= )" whole R"()
  let odd = integral & (round(b[] * 0.5) != b[] * 0.5) & (size < )" whole R"()
  let unsigned = select(b[] == b[], select(regular, power, limit), b[])
  let negative = (a[] < 0.0) | ((a[] == 0.0) & (1.0 / a[] < 0.0))
  let signed = select(odd & negative, -unsigned, unsigned)
  let undefined = (a[] < 0.0) & (-inf < a[]) & !integral
  let one = (a[] == 1.0) | (b[] == 0.0) | ((base == 1.0) & (size == inf))
  y[] = select(one, 1.0, select(undefined, nan, signed))
)"

// |a| modulo |b| by long division, 24 bits of the quotient a turn, each remainder exact; then the sign of b, as floor
// leaves it.
#define QUERN_MOD(turns, type, wide)                                                      \
  "let divisor = cast<" wide ">(abs(b[]))\nvar rest : " wide " = cast<" wide              \
  ">(abs(a[]))\n"                                                                         \
  "for turn in 0.." turns                                                                 \
  " {\n if rest >= divisor {\n"                                                           \
  "let quotient = trunc(min(rest / divisor, 1.7976931348623157e308))\n"                   \
  "rest := fma(-bits<" wide                                                               \
  ">(bits<u64>(quotient) & 18446744073172680704u64), divisor, rest)\n} }\n"               \
  "if rest < 0.0 { rest := rest + divisor }\n"                                            \
  "let left = select(a[] < 0.0, -cast<" type ">(rest), cast<" type                        \
  ">(rest))\n"                                                                            \
  "let moved = select((left != 0.0) & ((left < 0.0) != (b[] < 0.0)), left + b[], left)\n" \
  "y[] = select((abs(a[]) < inf) & (abs(b[]) > 0.0), moved, nan)\n"

constexpr MathRow kRows[] = {
    // 2^(a log2 e), the rounding error of the product and the low part of log2 e as a factor.
    {Op::kExp, DType::kF32, R"(
  let c = min(max(a[], -104.0), 89.0)
  let t = c * 1.4426950216293335
  let low = fma(c, 1.925963033500011e-08, fma(c, 1.4426950216293335, -t))
  y[] = exp2(t) * fma(low, 0.6931471806, 1.0)
)"},
    {Op::kExpm1, DType::kF32, R"(
  let c = min(max(a[], -18.0), 89.0)
  let n = round(c * 1.44269504)
  let near = fma(n, -0.69317626953125, c)
  let r = fma(n, 2.9088971304690583e-05, near)
  let left = fma(n, 2.9088971304690583e-05, near - r)
  let m = r + fma(r * r, poly(r; 4.99999940e-01, 1.66665226e-01, 4.16682921e-02, 8.36853217e-03, 1.38182985e-03), left)
  let half = bits<f32>((cast<i32>(n) + 126i32) << 23i32)
)" QUERN_EXPM1("2.9802322e-08")},
    {Op::kSigmoid, DType::kF32, "y[] = 1.0 / (1.0 + exp(-a[]))"},
    {Op::kLog, DType::kF32, QUERN_SPLIT_F32("a[]") R"(
  let p = poly(f; 3.33333135e-01, -2.50000089e-01, 2.00020716e-01, -1.66679889e-01, 1.42203584e-01, -1.24062337e-01,
               1.18835486e-01, -1.16700985e-01, 6.74926937e-02)
  let tail = fma(f * f, -0.5, fma(f * f * f, p, n * -2.9088971304690583e-05))
  let r = fma(n, 0.69317626953125, f + tail)
)" QUERN_LOG_LIMITS},
    {Op::kLog1p, DType::kF32, QUERN_SPLIT_F32("bits<f32>(bits<i32>(1.0 + a[]))") QUERN_LOST_OF_SUM R"(
  let p = poly(f; 3.33333135e-01, -2.50000089e-01, 2.00020716e-01, -1.66679889e-01, 1.42203584e-01, -1.24062337e-01,
               1.18835486e-01, -1.16700985e-01, 6.74926937e-02)
  let tail = fma(f * f, -0.5, fma(f * f * f, p, fma(n, -2.9088971304690583e-05, lost)))
  let r = fma(n, 0.69317626953125, f + tail)
)" QUERN_LOG1P_LIMITS},
    {Op::kLog2, DType::kF32, QUERN_SPLIT_F32("a[]") R"(
  let p = poly(f; 4.42695051e-01, -7.21347511e-01, 4.80896503e-01, -3.60682577e-01, 2.88618803e-01, -2.39952147e-01,
               2.04156771e-01, -1.88254431e-01, 1.86865330e-01, -1.16394520e-01)
  let r = n + fma(f, p, f)
)" QUERN_LOG_LIMITS},
    {Op::kSin, DType::kF32, QUERN_QUADRANT_F32 QUERN_SINE},
    {Op::kCos, DType::kF32, QUERN_QUADRANT_F32 QUERN_COSINE},
    {Op::kTan, DType::kF32, QUERN_QUADRANT_F32 QUERN_TANGENT},
    {Op::kAtan, DType::kF32,
     R"(
  let size = abs(a[])
  let over = 1.0 < size
  let t = select(over, 1.0 / size, size)
)" QUERN_ANGLE_F32
     "let turned = select(over, 1.5707963705062866 - (angle + 4.371138828673793e-08), angle)\n" QUERN_SIGNED_F32(
         "turned", "a[]")},
    {Op::kAtan2, DType::kF32, QUERN_QUOTIENT QUERN_ANGLE_F32 R"(
  let turned = select(steep, 1.5707963705062866 - (angle + 4.371138828673793e-08), angle)
  let left = select(bits<i32>(b[]) < 0i32, 3.1415927410125732 - (turned + 8.742277657347586e-08), turned)
  let defined = select((a[] == a[]) & (b[] == b[]), left, nan)
)" QUERN_SIGNED_F32("defined", "a[]")},
    {Op::kTanh, DType::kF32, R"(
  let size = abs(a[])
  let s = a[] * a[]
  let near = fma(s * poly(s; -3.33333164e-01, 1.33327201e-01, -5.38945347e-02, 2.14577932e-02, -7.66581250e-03,
                          1.74175669e-03), size, size)
  let far = 1.0 - 2.0 / (exp(size + size) + 1.0)
)" QUERN_SIGNED_F32("select(size < 0.75, near, far)", "a[]")},
    // An odd polynomial up to 1, in powers of a a - 1/2; then 1 - e^-q, the first coefficient of q in two parts. 1
    // beyond 4.
    {Op::kErf, DType::kF32, R"(
  let size = abs(a[])
  let s = fma(a[], a[], -0.5)
  let near = fma(poly(s; -3.45312618e-02, -2.81072199e-01, 7.94100314e-02, -1.82832759e-02, 3.47970054e-03,
                      -5.65641094e-04, 8.01595888e-05), size, size)
  let t = min(size, 4.0) - 1.0
  let e = exp(-poly(t; 1.84960556, 2.63896751, 8.43107164e-01, 4.15627509e-02, -1.00439461e-02, 2.00778479e-03,
                    -2.85936723e-04, 2.01703588e-05, 2.47777109e-07))
  let far = 1.0 - fma(e, 5.03694861e-08, e)
)" QUERN_SIGNED_F32("select(size < 1.0, near, far)", "a[]")},
    // In f64, as an error of the exponent is one of the result.
    {Op::kPow, DType::kF32, R"(
  let base = abs(a[])
  let regular = (0.0 < base) & (base < inf)
  let wide = bits<i64>(cast<f64>(select(regular, base, 1.0)))
  let k = (wide - 4604544271217802189) >> 52
  let m = bits<f64>(wide - (k << 52))
  let s = (m - 1.0) / (m + 1.0)
  let z = s * s
  let p = poly(z; 2.8853900817778499, 9.6179669411472035e-01, 5.7707794185624517e-01, 4.1220931064054367e-01,
               3.1990308455251254e-01, 2.8294024486966596e-01)
  let exponent = min(max(cast<f64>(b[]) * fma(s, p, cast<f64>(k)), -200.0), 200.0)
  let n = round(exponent)
  let r = exponent - n
  let e = poly(r; 9.9999999996168210e-01, 6.9314718072846515e-01, 2.4022651198155195e-01, 5.5504103533902623e-02,
               9.6180272539492309e-03, 1.3333922609841346e-03, 1.5469291062801719e-04, 1.5201910949728624e-05)
  let power = cast<f32>(e * bits<f64>((cast<i64>(n) + 1023) << 52))
)" QUERN_POW_LIMITS("16777216.0")},
    {Op::kMod, DType::kF32, QUERN_MOD("13", "f32", "f64")},

    {Op::kExp, DType::kF64, R"(
  let c = min(max(a[], -746.0), 710.0)
  let n = round(c * 1.4426950408889634)
  let r = fma(n, -1.9082149292705877e-10, fma(n, -0.6931471803691238, c))
  let e = poly(r; )" QUERN_EXP_TERMS ")\n" QUERN_POWER_F64("e", "n")},
    {Op::kExp2, DType::kF64, R"(
  let c = min(max(a[], -1080.0), 1030.0)
  let n = round(c)
  let r = (c - n) * 0.6931471805599453
  let e = poly(r; )" QUERN_EXP_TERMS ")\n" QUERN_POWER_F64("e", "n")},
    {Op::kExpm1, DType::kF64, R"(
  let c = min(max(a[], -40.0), 710.0)
  let n = round(c * 1.4426950408889634)
  let near = fma(n, -0.6931471803691238, c)
  let r = fma(n, -1.9082149292705877e-10, near)
  let left = fma(n, -1.9082149292705877e-10, near - r)
  let m = r + fma(r * r, poly(r; 0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333,
              0.001388888888888889, 0.0001984126984126984, 2.48015873015873e-05, 2.7557319223985893e-06,
              2.755731922398589e-07, 2.505210838544172e-08, 2.08767569878681e-09, 1.6059043836821613e-10,
              1.1470745597729725e-11), left)
  let half = bits<f64>((cast<i64>(n) + 1022) << 52)
)" QUERN_EXPM1("5.5511151231257827e-17")},
    {Op::kSigmoid, DType::kF64, "y[] = 1.0 / (1.0 + exp(-a[]))"},
    {Op::kLog, DType::kF64,
     QUERN_SPLIT_F64("a[]") "let r = fma(n, 0.6931471803691238, f - (half - (tail + n * "
                            "1.9082149292705877e-10)))\n" QUERN_LOG_LIMITS},
    {Op::kLog1p, DType::kF64,
     QUERN_SPLIT_F64("1.0 + a[]") QUERN_LOST_OF_SUM "let r = fma(n, 0.6931471803691238, f - (half - (tail + fma(n, "
                                                    "1.9082149292705877e-10, lost))))\n" QUERN_LOG1P_LIMITS},
    {Op::kLog2, DType::kF64, QUERN_SPLIT_F64("a[]") R"(
  let ln = f - (half - tail)
  let r = n + fma(ln, 1.4426950408889634, ln * 2.0355273740931033e-17)
)" QUERN_LOG_LIMITS},
    {Op::kSin, DType::kF64, QUERN_QUADRANT_F64 QUERN_SINE},
    {Op::kCos, DType::kF64, QUERN_QUADRANT_F64 QUERN_COSINE},
    {Op::kTan, DType::kF64, QUERN_QUADRANT_F64 QUERN_TANGENT},
    {Op::kAtan, DType::kF64,
     R"(
  let size = abs(a[])
  let over = 1.0 < size
  let t = select(over, 1.0 / size, size)
)" QUERN_ANGLE_F64
     "let turned = select(over, 1.5707963267948966 - (angle - 6.123233995736766e-17), angle)\n" QUERN_SIGNED_F64(
         "turned", "a[]")},
    {Op::kAtan2, DType::kF64, QUERN_QUOTIENT QUERN_ANGLE_F64 R"(
  let turned = select(steep, 1.5707963267948966 - (angle - 6.123233995736766e-17), angle)
  let left = select(bits<i64>(b[]) < 0, 3.141592653589793 - (turned - 1.2246467991473532e-16), turned)
  let defined = select((a[] == a[]) & (b[] == b[]), left, nan)
)" QUERN_SIGNED_F64("defined", "a[]")},
    // e^2a - 1 by its series near 0.
    {Op::kTanh, DType::kF64, R"(
  let size = abs(a[])
  let d = size + size
  let r = select(size < 0.17, d, 0.0)
  let near = d * poly(r; 1.0, 0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333,
             0.001388888888888889, 0.0001984126984126984, 2.48015873015873e-05, 2.7557319223985893e-06,
             2.755731922398589e-07, 2.505210838544172e-08, 2.08767569878681e-09,
             1.6059043836821613e-10, 1.1470745597729725e-11)
  let far = 1.0 - 2.0 / (exp(d) + 1.0)
)" QUERN_SIGNED_F64("select(size < 0.17, near / (near + 2.0), far)", "a[]")},
    // 2 / sqrt(pi) e^(-x x) x (1 + 2 x x / 3 (1 + 2 x x / 5 (...))), all terms positive; 1 beyond 6.
    {Op::kErf, DType::kF64, R"(
  let x = min(abs(a[]), 6.0)
  let s = x * x
  var total : f64 = 1.0
  var term : f64 = 1.0
  for i in 1..cast<i64>(25.0 + 3.0 * s) {
    term := term * (s + s) / cast<f64>(2 * i + 1)
    total := total + term
  }
  let e = exp(-s)
  let value = 1.1283791670955126 * (e - e * fma(x, x, -s)) * x * total
)" QUERN_SIGNED_F64("select(x < 6.0, value, select(x == x, 1.0, x))", "a[]")},
    // The logarithm in two doubles: 2 s with the rest of the division, n ln 2 in two parts.
    {Op::kPow, DType::kF64, R"(
  let base = abs(a[])
  let regular = (0.0 < base) & (base < inf)
  let x = select(regular, base, 1.0)
  let tiny = x < 2.2250738585072014e-308
  let scaled = bits<i64>(select(tiny, x * 18014398509481984.0, x))
  let k = (scaled - 4604544271217802189) >> 52
  let m = bits<f64>(scaled - (k << 52))
  let n = cast<f64>(k) - select(tiny, 54.0, 0.0)
  let d = m + 1.0
  let s = (m - 1.0) / d
  let left = (fma(-s, d, m - 1.0) - s * (1.0 - (d - m))) / d
  let z = s * s
  let series = s * z * poly(z; 0.6666666666666666, 0.4, 0.2857142857142857, 0.2222222222222222, 0.18181818181818182,
               0.15384615384615385, 0.13333333333333333, 0.11764705882352941, 0.10526315789473684, 0.09523809523809523,
               0.08695652173913043)
  let big = n * 0.6931471803691238
  let total = big + 2.0 * s
  let virtual = total - big
  let error = (big - (total - virtual)) + (2.0 * s - virtual)
  let added = error + (2.0 * left + series + n * 1.9082149292705877e-10)
  let logarithm = total + added
  let high = b[] * logarithm
  let rest = fma(b[], logarithm, -high) + b[] * (added - (logarithm - total))
  let power = exp(high) * (1.0 + select(abs(high) < 1000.0, rest, 0.0))
)" QUERN_POW_LIMITS("9007199254740992.0")},
    {Op::kMod, DType::kF64, QUERN_MOD("96", "f64", "f64")},
};

// poly(x; c0, c1, ...) written out.
std::string WithPolynomials(std::string text) {
  for (size_t at = text.find("poly("); at != std::string::npos; at = text.find("poly(")) {
    size_t end = at + 5;
    for (int depth = 1; depth > 0; ++end) depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    const std::vector<std::string> parts = absl::StrSplit(text.substr(at + 5, end - at - 6), ';');
    QUERN_CHECK(parts.size() == 2);
    const std::vector<std::string> terms = absl::StrSplit(parts[1], ',');
    std::string made = terms.back();
    for (size_t i = terms.size() - 1; i-- > 0;) made = absl::StrCat("fma(", made, ", ", parts[0], ", ", terms[i], ")");
    text.replace(at, end - at, made);
  }
  return text;
}

}  // namespace

StatusOr<const kir::Kernel*> MathLibrary::Find(Op op, DType dtype) {
  const auto found = parsed_.find({op, dtype});
  if (found != parsed_.end()) return &found->second;
  for (const MathRow& row : kRows) {
    if (row.op != op || row.dtype != dtype) continue;
    const bool two = kir::Row(op).arity == 2;
    const std::string type(quern::Name(dtype));
    QUERN_ASSIGN(kir::Kernel parsed,
                 kir::ParseKernel(absl::StrCat("kernel math (a", two ? ", b" : "", " : ", type, " in\n y : ", type,
                                               " out\n) { grid g in 0..1 {\n", WithPolynomials(row.body), "\n} }")));
    return &parsed_.emplace(std::pair(op, dtype), std::move(parsed)).first->second;
  }
  return absl::UnimplementedError(absl::StrCat(kir::Row(op).name, " of ", std::string(quern::Name(dtype))));
}

}  // namespace quern::ptx
