// Accuracy and special values of the vector math on doubles, object form, at every level the host runs, against libm in
// long double.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <sstream>

#include "unit/simd/math_support.h"

namespace quern::simd {
namespace {

constexpr uint64_t kSeed = 90217;

long double Sigmoid(long double x) { return x >= 0 ? 1 / (1 + expl(-x)) : expl(x) / (1 + expl(x)); }

struct Case {
  const char* name;
  long double (*reference)(long double);
  double limit;  // units in the last place
};
const Case kCases[] = {{"q_atan_f64", atanl, 3},      {"q_cos_f64", cosl, 3},     {"q_erf_f64", erfl, 1},
                       {"q_exp_f64", expl, 1},        {"q_exp2_f64", exp2l, 1},   {"q_expm1_f64", expm1l, 2},
                       {"q_log_f64", logl, 1},        {"q_log1p_f64", log1pl, 1}, {"q_log2_f64", log2l, 2},
                       {"q_sigmoid_f64", Sigmoid, 3}, {"q_sin_f64", sinl, 3},     {"q_tan_f64", tanl, 4},
                       {"q_tanh_f64", tanhl, 3}};

double UlpOfDouble(double value, long double expected) {
  const double nearest = static_cast<double>(expected);
  if (std::isnan(value) || std::isnan(nearest)) return std::isnan(value) && std::isnan(nearest) ? 0 : INFINITY;
  if (std::isinf(value) || std::isinf(nearest)) return value == nearest ? 0 : INFINITY;
  int exponent = -1021;
  if (fabsl(expected) >= 0x1p-1022L) frexpl(expected, &exponent);
  return static_cast<double>(fabsl(value - expected) / ldexpl(1, exponent - 53));
}

// A double travels as two lanes.
std::vector<double> Call(const char* name, const Level& level, const std::vector<double>& x,
                         const std::vector<double>* second = nullptr) {
  const auto as_lanes = [&](const std::vector<double>& values) {
    std::vector<Lane> lanes(2 * values.size());
    std::memcpy(lanes.data(), values.data(), values.size() * sizeof(double));
    while (lanes.size() % (level.vector_bytes / sizeof(Lane)) != 0) lanes.push_back(0);
    return lanes;
  };
  const std::vector<Lane> other = second == nullptr ? std::vector<Lane>() : as_lanes(*second);
  const std::vector<Lane> result = CallPrimitive<Lane>(name, level, as_lanes(x), second == nullptr ? nullptr : &other);
  std::vector<double> y(x.size());
  std::memcpy(y.data(), result.data(), y.size() * sizeof(double));
  return y;
}

// Bit patterns, the range of exp, numbers near 0 of every size, and a few units to either side; whole numbers and
// multiples of pi/2, where functions are exact or little is left of the argument, and what is near 1 or a power of two.
std::vector<double> Samples() {
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> unit(-1, 1);
  std::vector<double> x = {0.0,    -0.0,    INFINITY, -INFINITY, NAN,    1.0,    -1.0,   5e-324, -5e-324,
                           1e-310, -1e-310, 1.7e308,  -1.7e308,  709.78, 709.79, -745.1, -745.2, -708.5};
  for (int i = 0; i < 200000; ++i) {
    const uint64_t bits = random();
    double pattern;
    std::memcpy(&pattern, &bits, sizeof(pattern));
    x.insert(x.end(), {pattern, 750 * unit(random), std::ldexp(unit(random), -(i % 64)), 4 * unit(random)});
    const double whole = std::nearbyint(std::ldexp(unit(random), i % 60));
    x.insert(x.end(), {whole, whole * M_PI_2, std::ldexp(1 + 1e-9 * unit(random), i % 60 - 30)});
  }
  return x;
}

TEST(MathF64Test, WithinPromise) {
  const std::vector<double> x = Samples();
  for (const Case& c : kCases) {
    for (const Level& level : Levels()) {
      if (!HostSupports(level)) continue;
      const std::vector<double> y = Call(c.name, level, x);
      double worst = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const long double expected = c.reference(x[i]);
        const double error = UlpOfDouble(y[i], expected);
        worst = std::max(worst, error);
        ASSERT_LE(error, c.limit) << c.name << " " << level.name << " at " << x[i] << " seed " << kSeed;
        if (expected == 0) ASSERT_EQ(std::signbit(y[i]), std::signbit(expected)) << c.name << " at " << x[i];
      }
      std::printf("%-14s %-11s %.3f ULP\n", c.name, level.name.data(), worst);
    }
  }
}

struct BinaryCase {
  const char* name;
  long double (*reference)(long double, long double);
  double limit;
};
const BinaryCase kBinaryCases[] = {{"q_atan2_f64", atan2l, 3}, {"q_pow_f64", powl, 2}};

// Every pair of special values, bit patterns, and numbers of like and of unlike sizes.
TEST(MathF64Test, PairsWithinPromise) {
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> unit(-1, 1);
  const double specials[] = {0.0,  -0.0, 1.0,    -1.0,    INFINITY, -INFINITY, NAN,   5e-324,  -5e-324,
                             0.5,  -0.5, 2.0,    -2.0,    3.0,      -3.0,      4.0,   1.7e308, -1.7e308,
                             1e17, 1e-3, 1e-310, -1e-310, 1e300,    -1e300,    1e-300};
  std::vector<double> a, b;
  for (const double first : specials) {
    for (const double second : specials) a.push_back(first), b.push_back(second);
  }
  for (int i = 0; i < 200000; ++i) {
    double patterns[2];
    const uint64_t bits[] = {random(), random()};
    std::memcpy(patterns, bits, sizeof(patterns));
    const double size = std::ldexp(1, i % 40 - 20);
    a.insert(a.end(), {patterns[0], unit(random), size * unit(random), 1 + unit(random)});
    b.insert(b.end(), {patterns[1], unit(random), unit(random), 600 * unit(random)});
  }
  for (const BinaryCase& c : kBinaryCases) {
    for (const Level& level : Levels()) {
      if (!HostSupports(level)) continue;
      const std::vector<double> y = Call(c.name, level, a, &b);
      double worst = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        const long double expected = c.reference(a[i], b[i]);
        const double error = UlpOfDouble(y[i], expected);
        worst = std::max(worst, error);
        ASSERT_LE(error, c.limit) << c.name << " " << level.name << " at " << a[i] << ", " << b[i] << " seed " << kSeed;
        if (expected == 0)
          ASSERT_EQ(std::signbit(y[i]), std::signbit(expected)) << c.name << " at " << a[i] << ", " << b[i];
      }
      std::printf("%-14s %-11s %.3f ULP\n", c.name, level.name.data(), worst);
    }
  }
}

TEST(MathF64Test, WholePowersOfTwoAreExact) {
  std::vector<double> whole, powers;
  for (int n = -1074; n < 1024; ++n) whole.push_back(n), powers.push_back(std::ldexp(1, n));
  for (const Level& level : Levels()) {
    if (!HostSupports(level)) continue;
    EXPECT_EQ(Call("q_exp2_f64", level, whole), powers) << level.name;
    EXPECT_EQ(Call("q_log2_f64", level, powers), whole) << level.name;
  }
}

}  // namespace
}  // namespace quern::simd
