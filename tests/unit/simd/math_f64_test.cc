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
const Case kCases[] = {{"q_exp_f64", expl, 1},     {"q_expm1_f64", expm1l, 2},    {"q_log_f64", logl, 1},
                       {"q_log1p_f64", log1pl, 1}, {"q_sigmoid_f64", Sigmoid, 3}, {"q_tanh_f64", tanhl, 3}};

double UlpOfDouble(double value, long double expected) {
  const double nearest = static_cast<double>(expected);
  if (std::isnan(value) || std::isnan(nearest)) return std::isnan(value) && std::isnan(nearest) ? 0 : INFINITY;
  if (std::isinf(value) || std::isinf(nearest)) return value == nearest ? 0 : INFINITY;
  int exponent = -1021;
  if (fabsl(expected) >= 0x1p-1022L) frexpl(expected, &exponent);
  return static_cast<double>(fabsl(value - expected) / ldexpl(1, exponent - 53));
}

// A double travels as two lanes.
std::vector<double> Call(const char* name, const Level& level, const std::vector<double>& x) {
  std::vector<Lane> lanes(2 * x.size());
  std::memcpy(lanes.data(), x.data(), x.size() * sizeof(double));
  while (lanes.size() % (level.vector_bytes / sizeof(Lane)) != 0) lanes.push_back(0);
  const std::vector<Lane> result = CallPrimitive<Lane>(name, level, lanes);
  std::vector<double> y(x.size());
  std::memcpy(y.data(), result.data(), y.size() * sizeof(double));
  return y;
}

// Bit patterns, the range of exp, numbers near 0 of every size, and a few units to either side.
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

}  // namespace
}  // namespace quern::simd
