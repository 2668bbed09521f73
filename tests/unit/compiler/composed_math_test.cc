// Functions that ops spell out in others (Sinh by e^x, Asin by Atan2): their greatest errors, in units of the last
// place, are the second table of docs/math.md, which must hold.
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "quern/graph.h"

namespace quern {
namespace {

struct Function {
  const char* op;
  long double (*exact)(long double);
};
constexpr Function kFunctions[] = {{"Acos", std::acos},   {"Acosh", std::acosh}, {"Asin", std::asin},
                                   {"Asinh", std::asinh}, {"Atanh", std::atanh}, {"Cosh", std::cosh},
                                   {"Sinh", std::sinh}};

// "| Acos | 2.1 | 3.0 |": by op, of f32 and of f64.
std::map<std::string, std::pair<double, double>> ReadTable() {
  std::map<std::string, std::pair<double, double>> table;
  std::ifstream page(std::string(QUERN_SOURCE_DIR) + "/docs/math.md");
  for (std::string line; std::getline(page, line);) {
    char op[32] = {};
    double f32 = 0, f64 = 0;
    if (std::sscanf(line.c_str(), "| %31[A-Za-z] | %lf | %lf |", op, &f32, &f64) == 3) table[op] = {f32, f64};
  }
  return table;
}

// Floats of every size and both signs, and as many of [-1, 1] and of [1, 2], where most of them have their domains.
template <typename T>
std::vector<T> Samples() {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<T> near(-1, 1), above(1, 2);
  std::vector<T> samples;
  while (samples.size() < 200'000) {
    const uint64_t bits = random();
    const T any = sizeof(T) == 4 ? static_cast<T>(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                                 : static_cast<T>(std::bit_cast<double>(bits));
    if (std::isnormal(any)) samples.push_back(any);
    samples.push_back(near(random));
    samples.push_back(above(random));
    samples.push_back(near(random) * 64);
  }
  return samples;
}

// The greatest error of the op on that level. What is subnormal may be flushed; what overflows must.
template <typename T>
double Worst(const Function& function, const std::vector<T>& x, const char* cpu) {
  const int64_t count = static_cast<int64_t>(x.size());
  Graph graph;
  graph.Output(
      "y", graph.Op(function.op, {graph.Input("x", std::string(DTypeName<T>()) + "[" + std::to_string(count) + "]")}));
  Result<Program> program = graph.Compile({.cpu = cpu, .threads = 1});
  EXPECT_TRUE(program.ok()) << program.error();
  if (!program.ok()) return INFINITY;
  std::vector<T> y(x.size());
  EXPECT_TRUE(program->Run({In("x", x, {count})}, {Out("y", y, {count})}).ok());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double want = function.exact(x[i]);
    const T rounded = static_cast<T>(want);
    if (std::isnan(rounded) || std::isinf(rounded)) {
      // As far from the end of the range as the error reaches it may be on either side.
      const bool right =
          std::isnan(rounded) ? std::isnan(y[i]) : std::fabs(y[i]) > std::numeric_limits<T>::max() * T{0.999};
      EXPECT_TRUE(right) << function.op << " of " << x[i] << " is " << y[i];
      continue;
    }
    if (std::fabs(rounded) < std::numeric_limits<T>::min()) continue;
    const T next = std::nextafter(std::fabs(rounded), std::numeric_limits<T>::infinity());
    const long double place = std::isinf(next) ? std::fabs(rounded) * std::numeric_limits<T>::epsilon()
                                               : static_cast<long double>(next) - std::fabs(rounded);
    const double error = static_cast<double>(std::fabs(static_cast<long double>(y[i]) - want) / place);
    worst = error <= worst ? worst : error;
  }
  return worst;
}

TEST(ComposedMath, ErrorsAreThoseOfThePage) {
  const auto table = ReadTable();
  const std::vector<float> singles = Samples<float>();
  const std::vector<double> doubles = Samples<double>();
  for (const Function& function : kFunctions) {
    ASSERT_TRUE(table.contains(function.op)) << function.op;
    const auto& [f32, f64] = table.at(function.op);
    const double single = std::max(Worst(function, singles, "native"), Worst(function, singles, "x86-64-v2"));
    const double of_double = Worst(function, doubles, "native");
    std::printf("| %s | %.1f | %.1f |\n", function.op, std::ceil(single * 10) / 10, std::ceil(of_double * 10) / 10);
    EXPECT_LE(single, f32) << function.op;
    EXPECT_LE(of_double, f64) << function.op;
  }
}

}  // namespace
}  // namespace quern
