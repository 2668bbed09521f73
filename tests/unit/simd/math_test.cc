// Accuracy and special values of the vector math, object form, at every level the host runs.
//
// The greatest errors go to the table in docs/math.md: BLESS=1 writes it, otherwise it must hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>

#include "unit/simd/math_support.h"

namespace quern::simd {
namespace {

constexpr uint64_t kStep = 997;

double Sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double Rsqrt(double x) { return 1 / std::sqrt(x); }

struct UnaryCase {
  const char* name;
  double (*reference)(double);
  double limit;  // ULP: the promise, which the table refines
};

const UnaryCase kUnary[] = {
    {"q_atan_f32", std::atan, 4},     {"q_cos_f32", std::cos, 4},       {"q_erf_f32", std::erf, 1},
    {"q_expm1_f32", std::expm1, 1.5}, {"q_log1p_f32", std::log1p, 1.5}, {"q_exp_f32", std::exp, 1},
    {"q_exp2_f32", std::exp2, 4},     {"q_log_f32", std::log, 1},       {"q_log2_f32", std::log2, 4},
    {"q_rsqrt_f32", Rsqrt, 4},        {"q_sigmoid_f32", Sigmoid, 2.25}, {"q_sin_f32", std::sin, 4},
    {"q_tan_f32", std::tan, 4},       {"q_tanh_f32", std::tanh, 2.4},
};

struct BinaryCase {
  const char* name;
  double (*reference)(double, double);
  double limit;
};

const BinaryCase kBinary[] = {{"q_atan2_f32", std::atan2, 4}, {"q_pow_f32", std::pow, 4}};

std::vector<const Level*> HostRunnable() {
  std::vector<const Level*> levels;
  for (const Level& level : Levels()) {
    if (HostSupports(level)) levels.push_back(&level);
  }
  return levels;
}

struct Worst {
  double error = 0;
  size_t at = 0;
};

Worst WorstError(const std::vector<float>& got, const std::vector<double>& expected) {
  Worst worst;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = UlpError(got[i], expected[i]);
    if (error > worst.error) worst = {error, i};
  }
  return worst;
}

// name -> level -> ULP; filled by the accuracy tests, checked against the document by the last one.
std::map<std::string, std::map<std::string, double>>& Measured() {
  static auto* measured = new std::map<std::string, std::map<std::string, double>>;
  return *measured;
}

TEST(MathTest, UnaryWithinPromise) {
  std::vector<float> x = SampleFloats(kStep);
  for (const UnaryCase& c : kUnary) {
    std::vector<double> expected(x.size());
    std::transform(x.begin(), x.end(), expected.begin(), [&](float v) { return c.reference(v); });
    for (const Level* level : HostRunnable()) {
      const Worst worst = WorstError(CallPrimitive<float>(c.name, *level, x), expected);
      std::printf("%-14s %-11s %.3f ULP at %a\n", c.name, level->name.data(), worst.error, x[worst.at]);
      EXPECT_LE(worst.error, c.limit) << c.name << " " << level->name << " at " << x[worst.at];
      Measured()[c.name][std::string(level->name)] = worst.error;
    }
  }
}

// Arguments of two operands: random bit patterns, and pairs whose result is an ordinary number.
void Pairs(std::vector<float>& a, std::vector<float>& b) {
  std::mt19937 random(20240607);
  for (int i = 0; i < 400000; ++i) {
    const uint32_t bits[2] = {static_cast<uint32_t>(random()), static_cast<uint32_t>(random())};
    float pair[2];
    std::memcpy(pair, bits, sizeof(pair));
    a.push_back(pair[0]);
    b.push_back(pair[1]);
  }
  std::uniform_real_distribution<float> exponent(-126, 127), mantissa(1, 2), near_one(0.5f, 2), target(-150, 130);
  for (int i = 0; i < 800000; ++i) {
    const float x = i % 2 ? std::ldexp(mantissa(random), static_cast<int>(exponent(random))) : near_one(random);
    const float log = std::log2(x);
    a.push_back(x);
    b.push_back(log == 0 ? 3.0f : target(random) / log);
  }
  for (int i = 0; i < 400000; ++i) {
    const float scale = std::ldexp(1.0f, static_cast<int>(exponent(random) / 2));
    a.push_back(scale * mantissa(random) * (i & 1 ? -1 : 1));
    b.push_back(scale * mantissa(random) * (i & 2 ? -1 : 1));
  }
  for (int x = -40; x <= 40; ++x) {
    for (int y = -40; y <= 40; ++y) {
      a.push_back(static_cast<float>(x));
      b.push_back(static_cast<float>(y));
    }
  }
}

TEST(MathTest, BinaryWithinPromise) {
  std::vector<float> a, b;
  Pairs(a, b);
  for (const BinaryCase& c : kBinary) {
    std::vector<double> expected(a.size());
    for (size_t i = 0; i < a.size(); ++i) expected[i] = c.reference(a[i], b[i]);
    for (const Level* level : HostRunnable()) {
      const Worst worst = WorstError(CallPrimitive<float>(c.name, *level, a, &b), expected);
      std::printf("%-14s %-11s %.3f ULP at %a, %a\n", c.name, level->name.data(), worst.error, a[worst.at],
                  b[worst.at]);
      EXPECT_LE(worst.error, c.limit) << c.name << " " << level->name << " at " << a[worst.at] << ", " << b[worst.at];
      Measured()[c.name][std::string(level->name)] = worst.error;
    }
  }
}

// The same value and, for zeros and infinities, the same sign as the double function's result rounded to float.
void ExpectSame(float got, double expected, const std::string& where) {
  const float rounded = static_cast<float>(expected);
  if (std::isnan(rounded)) {
    EXPECT_TRUE(std::isnan(got)) << where << " gave " << got;
  } else if (rounded == 0 || std::isinf(rounded)) {
    EXPECT_EQ(got, rounded) << where;
    EXPECT_EQ(std::signbit(got), std::signbit(rounded)) << where << " gave " << got;
  }
}

const float kSpecial[] = {0.0f,      -0.0f,    INFINITY,  -INFINITY,   NAN,        -NAN,           1.0f,
                          -1.0f,     0.5f,     -0.5f,     2.0f,        -2.0f,      3.0f,           -3.0f,
                          1.5f,      -1.5f,    1e-40f,    -1e-40f,     1e-45f,     -1e-45f,        1e38f,
                          -1e38f,    3.4e38f,  -3.4e38f,  100.0f,      -100.0f,    -103.99f,       88.73f,
                          128.0f,    -150.0f,  8388609,   -8388609,    16777215,   -16777215,      16777216,
                          -16777216, 33554432, -33554432, 0.99999994f, 1.0000001f, 1.17549435e-38f};

TEST(MathTest, UnarySpecialValues) {
  const std::vector<float> x(std::begin(kSpecial), std::end(kSpecial));
  for (const Level* level : HostRunnable()) {
    for (const UnaryCase& c : kUnary) {
      const std::vector<float> got = CallPrimitive<float>(c.name, *level, x);
      for (size_t i = 0; i < x.size(); ++i) {
        std::ostringstream where;
        where << c.name << "_" << level->name << "(" << x[i] << ")";
        ExpectSame(got[i], c.reference(x[i]), where.str());
        EXPECT_LE(UlpError(got[i], c.reference(x[i])), c.limit) << where.str();
      }
    }
  }
}

TEST(MathTest, BinarySpecialValues) {
  std::vector<float> a, b;
  for (float x : kSpecial) {
    for (float y : kSpecial) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  for (const Level* level : HostRunnable()) {
    for (const BinaryCase& c : kBinary) {
      const std::vector<float> got = CallPrimitive<float>(c.name, *level, a, &b);
      for (size_t i = 0; i < a.size(); ++i) {
        std::ostringstream where;
        where << c.name << "_" << level->name << "(" << a[i] << ", " << b[i] << ")";
        ExpectSame(got[i], c.reference(a[i], b[i]), where.str());
        EXPECT_LE(UlpError(got[i], c.reference(a[i], b[i])), c.limit) << where.str();
      }
    }
  }
}

TEST(MathTest, ExactWhereTheResultIsAFloat) {
  std::vector<float> integer, power, one(1, 1.0f);
  for (int n = -149; n <= 127; ++n) {
    integer.push_back(static_cast<float>(n));
    power.push_back(std::ldexp(1.0f, n));
  }
  for (const Level* level : HostRunnable()) {
    EXPECT_EQ(CallPrimitive<float>("q_exp2_f32", *level, integer), power) << level->name;
    EXPECT_EQ(CallPrimitive<float>("q_log2_f32", *level, power), integer) << level->name;
    EXPECT_EQ(CallPrimitive<float>("q_log_f32", *level, one)[0], 0.0f) << level->name;
    std::vector<float> x, y, expected;
    for (int base = 2; base <= 31; ++base) {
      double product = 1;
      for (int e = 0; product <= 0x1p24; ++e, product *= base) {
        x.push_back(static_cast<float>(e % 2 ? -base : base));
        y.push_back(static_cast<float>(e));
        expected.push_back(static_cast<float>(e % 2 ? -product : product));
      }
    }
    EXPECT_EQ(CallPrimitive<float>("q_pow_f32", *level, x, &y), expected) << level->name;
  }
}

// Near a multiple of pi/2 the reduced argument is tiny: the floats that come nearest to one, found by continued
// fractions, need the most bits of pi. 16367173 2^72 is the worst of all.
TEST(MathTest, TrigonometryAtItsWorstArguments) {
  std::vector<float> x;
  for (int e = -3; e <= 104; ++e) {
    // Convergents p/q of 2^e 2/pi with p odd or even; |m 2^e 2/pi - n| is least at m = q.
    long double value = std::ldexp(2 / 3.14159265358979323846264338327950288L, e);
    long double q0 = 0, q1 = 1;
    for (int k = 0; k < 30; ++k) {
      const long double whole = std::floor(value);
      if (k > 0) {
        const long double q2 = whole * q1 + q0;
        q0 = q1;
        q1 = q2;
      }
      if (q1 >= 0x1p24L) break;
      x.push_back(static_cast<float>(std::ldexp(q1, e)));
      if (value == whole) break;
      value = 1 / (value - whole);
    }
  }
  x.push_back(std::ldexp(16367173.0f, 72));
  for (const UnaryCase& c : kUnary) {
    const std::string name = c.name;
    if (name != "q_sin_f32" && name != "q_cos_f32" && name != "q_tan_f32") continue;
    for (const Level* level : HostRunnable()) {
      const std::vector<float> got = CallPrimitive<float>(name, *level, x);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_LE(UlpError(got[i], c.reference(x[i])), c.limit) << name << "_" << level->name << "(" << x[i] << ")";
      }
    }
  }
}

std::string Document() { return std::string(QUERN_SOURCE_DIR) + "/docs/math.md"; }

constexpr std::string_view kNotMeasured = "-";

// The numeric cells of the document's table: function -> level -> bound.
std::map<std::string, std::map<std::string, double>> ReadTable(const std::string& text) {
  std::map<std::string, std::map<std::string, double>> table;
  std::istringstream lines(text);
  std::vector<std::string> columns;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("| ", 0) != 0) continue;
    std::vector<std::string> cells;
    std::istringstream row(line.substr(2));
    for (std::string cell; std::getline(row, cell, '|');) {
      cells.push_back(cell.substr(0, cell.find(' ', 1)));
      cells.back().erase(0, cells.back().find_first_not_of(' '));
    }
    if (cells[0] == "function") columns = cells;
    if (cells[0].rfind("q_", 0) != 0) continue;
    for (size_t i = 1; i < cells.size() && i < columns.size(); ++i) {
      if (cells[i] != kNotMeasured) table[cells[0]][columns[i]] = std::atof(cells[i].c_str());
    }
  }
  return table;
}

TEST(MathTest, DocumentHolds) {
  if (Measured().empty()) GTEST_SKIP() << "needs the accuracy tests in the same run";
  std::ifstream in(Document());
  std::stringstream buffer;
  buffer << in.rdbuf();
  std::string text = buffer.str();
  auto table = ReadTable(text);
  if (std::getenv("BLESS") != nullptr) {
    std::vector<Level> levels;
    std::copy_if(Levels().begin(), Levels().end(), std::back_inserter(levels),
                 [](const Level& level) { return level.has_objects; });
    std::ostringstream out;
    out << "| function |";
    for (const Level& level : levels) out << " " << level.name << " |";
    out << "\n|---|";
    for (size_t i = 0; i < levels.size(); ++i) out << "---|";
    out << "\n";
    for (const auto& [name, errors] : Measured()) {
      out << "| " << name << " |";
      for (const Level& level : levels) {
        const std::string key(level.name);
        // A level that this host lacks keeps its figure.
        if (const auto found = errors.find(key); found != errors.end())
          table[name][key] = std::ceil(found->second * 100) / 100;
        char cell[32] = "";
        if (table[name].contains(key)) std::snprintf(cell, sizeof(cell), "%.2f", table[name][key]);
        out << " " << (*cell == 0 ? kNotMeasured : cell) << " |";
      }
      out << "\n";
    }
    const size_t begin = text.find("| function |"), end = text.find("\n\n", begin);
    ASSERT_NE(begin, std::string::npos);
    text.replace(begin, end == std::string::npos ? end : end + 1 - begin, out.str());
    std::ofstream(Document()) << text;
    return;
  }
  for (const auto& [name, errors] : Measured()) {
    for (const auto& [level, error] : errors) {
      if (table[name].size() > 0 && !table[name].contains(level)) continue;  // measured where that level is not
      const double bound = table[name][level];
      EXPECT_LE(error, bound + 1e-6) << name << " " << level << ": docs/math.md promises less; BLESS=1 rewrites it";
      EXPECT_GE(error, bound - 0.1) << name << " " << level << ": docs/math.md is out of date; BLESS=1 rewrites it";
    }
  }
}

}  // namespace
}  // namespace quern::simd
