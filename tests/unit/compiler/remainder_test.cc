// Fmod and Mod of floats: each bit is that of C's fmod, which is exact, for quotients of any size and at the ends.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "quern/graph.h"

namespace quern {
namespace {

constexpr uint64_t kSeed = 20261124;

template <typename T>
void Pairs(std::vector<T>& x, std::vector<T>& y) {
  using Limits = std::numeric_limits<T>;
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<T> near(-3, 3);
  std::uniform_int_distribution<int> bit(0, Limits::digits + 4);
  const auto any = [&] {
    const uint64_t bits = random();
    return sizeof(T) == 4 ? static_cast<T>(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                          : static_cast<T>(std::bit_cast<double>(bits));
  };
  const auto add = [&](T a, T b) {
    x.push_back(a);
    y.push_back(b);
  };
  while (x.size() < 60'000) {
    add(near(random), near(random));
    const T a = near(random), b = near(random);
    // Next to a whole number of b, which may be as large as what the fast way takes, and larger.
    const T multiple = std::trunc(std::ldexp(a, bit(random))) * b;
    add(multiple, b);
    add(std::nextafter(multiple, Limits::infinity()), b);
    add(std::nextafter(multiple, -Limits::infinity()), b);
    if (x.size() % 100 < 4) add(any(), any());
  }
  const T ends[] = {0, T{-0.0}, 1, -1, Limits::max(), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()};
  for (const T a : ends)
    for (const T b : ends) add(a, b);
  x.resize(x.size() / 16 * 16 + 7, 5);  // a tail
  y.resize(x.size(), 3);
}

template <typename T>
bool Normal(T value) {
  return value == 0 || std::fabs(value) >= std::numeric_limits<T>::min() || !std::isfinite(value);
}

// Python's: the sign is the divisor's.
template <typename T>
T Floored(T a, T b) {
  const T rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <typename T>
void Check(const char* op, T (*exact)(T, T), const char* cpu) {
  SCOPED_TRACE(std::string(op) + " " + std::string(DTypeName<T>()) + " " + cpu);
  std::vector<T> x, y;
  Pairs(x, y);
  const auto count = static_cast<int64_t>(x.size());
  const std::string type = std::string(DTypeName<T>()) + "[" + std::to_string(count) + "]";
  Graph graph;
  graph.Output("z", graph.Op(op, {graph.Input("x", type), graph.Input("y", type)}));
  Result<Program> program = graph.Compile({.cpu = cpu, .threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  std::vector<T> z(x.size());
  ASSERT_TRUE(program->Run({In("x", x, {count}), In("y", y, {count})}, {Out("z", z, {count})}).ok());
  int wrong = 0;
  for (size_t i = 0; i < x.size() && wrong < 5; ++i) {
    const T want = exact(x[i], y[i]);
    if (!Normal(x[i]) || !Normal(y[i]) || !Normal(std::fmod(x[i], y[i])) || !Normal(want)) continue;  // may be flushed
    const bool same = std::isnan(want) ? std::isnan(z[i]) : z[i] == want && (want != 0 || z[i] == 0);
    if (same) continue;
    ++wrong;
    ADD_FAILURE() << x[i] << " by " << y[i] << " is " << z[i] << ", not " << want;
  }
}

TEST(Remainder, IsThatOfC) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  for (const char* cpu : {"x86-64-v2", "x86-64-v3", "native"}) {
    Check<float>("Fmod", [](float a, float b) { return std::fmod(a, b); }, cpu);
    Check<double>("Fmod", [](double a, double b) { return std::fmod(a, b); }, cpu);
    Check<float>("Mod", Floored<float>, cpu);
    Check<double>("Mod", Floored<double>, cpu);
  }
}

}  // namespace
}  // namespace quern
