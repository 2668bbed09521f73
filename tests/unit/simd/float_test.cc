// The float tiles (dot, mma, pack) against double arithmetic, at every level that the host runs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/simd/float_support.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quern::simd {
namespace {

using DotTile = void(float*, int64_t, const void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t, int64_t);
using MmaF64Tile = void(double*, int64_t, const void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t,
                        int64_t);
using MmaF32Tile = void(float*, int64_t, const void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t, int64_t,
                        int64_t, int64_t, int64_t);
using PackTile = void(void*, int64_t, const void*, int64_t, int64_t, int64_t);

constexpr uint32_t kSeed = 20240613;
constexpr float kUntouched = -77.25f;

// Sums of k products in f32, in any order: the error grows with the depth of the sum, here far below this.
double Tolerance(double magnitude) { return 2e-6 * magnitude + 1e-30; }

// Weights of T, activations of X.
template <typename T, typename X = float>
void CheckDot(std::string_view level, int64_t m, int64_t n, int64_t k, int64_t w_gap, int64_t x_gap, Numbers& numbers) {
  constexpr bool kPairs = std::is_same_v<X, BFloat16>;
  auto* dot = Tile<DotTile>(std::string("qk_dot_") + TypeName<T>() + (kPairs ? "_pairs" : ""), level);
  const int64_t w_row = k + w_gap, x_row = k + x_gap, y_ld = n + 3;
  Guarded<T> w((n - 1) * w_row + k);
  Guarded<X> x((m - 1) * x_row + k);
  Guarded<float> y((m - 1) * y_ld + n);
  numbers.Fill(w.data(), w.size());
  numbers.Fill(x.data(), x.size());
  for (int64_t i = 0; i < y.size(); ++i) y[i] = kUntouched;
  for (int64_t r = 0; r < m; ++r) numbers.Fill(&y[r * y_ld], n);
  std::vector<float> before(y.data(), y.data() + y.size());
  dot(y.data(), y_ld, w.data(), w_row * sizeof(T), x.data(), x_row * sizeof(X), m, n, k, 8192);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t r = i / y_ld, j = i % y_ld;
    if (j >= n) {
      ASSERT_EQ(y[i], kUntouched) << "gap of y at row " << r;
      continue;
    }
    double sum = before[i], magnitude = std::fabs(sum);
    for (int64_t p = 0; p < k; ++p) {
      const double term = static_cast<double>(ToFloat(w[j * w_row + p])) * ToFloat(x[r * x_row + p]);
      sum += term;
      magnitude += std::fabs(term);
    }
    ASSERT_NEAR(y[i], sum, Tolerance(magnitude)) << TypeName<T>() << " " << level << " m " << m << " n " << n << " k "
                                                 << k << " at " << r << "," << j << " seed " << kSeed;
  }
}

TEST(DotFloat, EqualsDouble) {
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    for (int64_t k :
         {1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 31, 32, 33, 47, 61, 64, 65, 79, 127, 128, 131, 257, 769}) {
      for (int64_t m = 1; m <= 11; ++m) {
        for (int64_t n : {1, 2, 3, 7}) {
          CheckDot<float>(level, m, n, k, 0, 0, numbers);
          CheckDot<uint16_t>(level, m, n, k, 0, 0, numbers);
          CheckDot<BFloat16>(level, m, n, k, 0, 0, numbers);
          CheckDot<BFloat16, BFloat16>(level, m, n, k, 0, 0, numbers);
        }
      }
      CheckDot<float>(level, 3, 5, k, 13, 7, numbers);
      CheckDot<uint16_t>(level, 3, 5, k, 13, 7, numbers);
      CheckDot<BFloat16>(level, 3, 5, k, 13, 7, numbers);
      CheckDot<BFloat16, BFloat16>(level, 3, 5, k, 13, 7, numbers);
    }
  }
}

// Every half, by the tail (k = 1) and by whole vectors (a pack), also while the processor flushes denormals.
void CheckEveryHalf() {
  for (const std::string& level : HostLevels()) {
    auto* dot = Tile<DotTile>("qk_dot_f16", level);
    auto* pack = Tile<PackTile>("qk_pack_f16_kn32", level);
    const float one = 1.0f;
    std::vector<uint16_t> halves(65536);
    for (int i = 0; i < 65536; ++i) halves[i] = static_cast<uint16_t>(i);
    std::vector<float> packed(65536);
    pack(packed.data(), 0, halves.data(), 2048 * sizeof(uint16_t), 32, 2048);
    for (int i = 0; i < 65536; ++i) {
      float y = 0.0f;
      dot(&y, 1, &halves[i], sizeof(uint16_t), &one, sizeof(float), 1, 1, 1, 0);
      const float want = HalfToFloat(halves[i]), turned = packed[(i % 2048) * 32 + i / 2048];
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(y) && std::isnan(turned)) << level << " half " << i;
      } else {
        ASSERT_EQ(y, want) << level << " half " << i;
        ASSERT_EQ(turned, want) << level << " half " << i;
        ASSERT_EQ(std::signbit(turned), std::signbit(want)) << level << " half " << i;
      }
    }
  }
}

TEST(DotFloat, ConvertsEveryHalf) { CheckEveryHalf(); }

#if defined(__x86_64__)
TEST(DotFloat, ConvertsEveryHalfWhileFlushingDenormals) {
  const unsigned old = _mm_getcsr();
  _mm_setcsr(old | 0x8040);
  CheckEveryHalf();
  _mm_setcsr(old);
}
#endif

// Panels of T, whose sums are T, added to what is there or from zero.
template <typename T>
void CheckMma(std::string_view level, int64_t m, int64_t n, int64_t k, int64_t c_ld, int64_t x_row, Numbers& numbers) {
  constexpr bool kDouble = std::is_same_v<T, double>;
  // Doubles have digits that no float has.
  const auto number = [&]() -> T { return numbers.Uniform(-1, 1) + (kDouble ? T(1e-9) * numbers.Uniform(-1, 1) : 0); };
  Guarded<T> c((m - 1) * c_ld + n);
  Guarded<T> x((m - 1) * x_row + k);
  Guarded<T> panel(k * 32);
  for (int64_t i = 0; i < x.size(); ++i) x[i] = number();
  for (int64_t i = 0; i < k * 32; ++i) panel[i] = i % 32 < n ? number() : 0;
  const bool from_zero = (m + n + k) % 2 == 0;
  for (int64_t i = 0; i < c.size(); ++i)
    c[i] = i % c_ld >= n ? T(kUntouched) : from_zero ? std::numeric_limits<T>::quiet_NaN() : number();
  std::vector<T> before(c.data(), c.data() + c.size());
  // What is asked for beside it changes nothing.
  if constexpr (kDouble)
    Tile<MmaF64Tile>("qk_mma_f64", level)(c.data(), c_ld, x.data(), x_row * sizeof(T), panel.data(), 0, m, n, k,
                                          from_zero);
  else
    Tile<MmaF32Tile>("qk_mma_f32", level)(c.data(), c_ld, x.data(), x_row * sizeof(T), panel.data(), 0, m, n, k,
                                          m % 2 * 8192, m % 3 * k * 64, m % 5 * 64, from_zero);
  for (int64_t i = 0; i < c.size(); ++i) {
    const int64_t r = i / c_ld, j = i % c_ld;
    if (j >= n) {
      ASSERT_EQ(c[i], kUntouched) << level << " m " << m << " n " << n << " wrote column " << j << " of row " << r;
      continue;
    }
    double sum = from_zero ? 0 : before[i], magnitude = std::fabs(sum);
    for (int64_t p = 0; p < k; ++p) {
      const double term = static_cast<double>(x[r * x_row + p]) * panel[p * 32 + j];
      sum += term;
      magnitude += std::fabs(term);
    }
    ASSERT_NEAR(c[i], sum, kDouble ? 2e-14 * magnitude : Tolerance(magnitude))
        << level << " m " << m << " n " << n << " k " << k << " at " << r << "," << j << " seed " << kSeed;
  }
}

template <typename T>
void CheckMmas() {
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    for (int64_t m = 1; m <= 29; ++m) {
      for (int64_t n : {1, 3, 5, 8, 13, 16, 17, 23, 31, 32}) CheckMma<T>(level, m, n, 37, 32, 41, numbers);
      for (int64_t k : {1, 2, 3, 4, 5, 7, 67, 131}) CheckMma<T>(level, m, 32, k, 37, k, numbers);
    }
    for (int64_t n = 1; n <= 32; ++n) CheckMma<T>(level, 13, n, 11, 43, 17, numbers);
    CheckMma<T>(level, 53, 29, 19, 32, 4096 / sizeof(T), numbers);  // rows 4 KiB apart
  }
}

TEST(MmaF32, EqualsDouble) { CheckMmas<float>(); }

using TwoPanelsTile = void(float*, int64_t, float*, int64_t, const void*, int64_t, const void*, int64_t, const void*,
                           int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

// Two panels at once are what each is by itself, to the bit, and nothing beside them is written.
TEST(MmaF32Pair, IsTwoPanelsToTheBit) {
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    auto* mma = Tile<MmaF32Tile>("qk_mma_f32", level);
    auto* pair = Tile<TwoPanelsTile>("qk_mma_f32_pair", level);
    for (int64_t m = 1; m <= 37; ++m) {
      for (const int64_t n : {32, 17}) {
        for (const int64_t k : {1, 7, 67}) {
          for (const auto& [ahead, next] : {std::pair{0, 0}, {8192, 0}, {8192, 1000}, {8192, 8192}, {0, 1000}}) {
            const int64_t c_ld = 37, d_ld = 32, x_row = k + 3;
            Guarded<float> c((m - 1) * c_ld + n), d((m - 1) * d_ld + n), x((m - 1) * x_row + k), v(k * 32), w(k * 32);
            for (Guarded<float>* const values : {&c, &d, &x, &v, &w}) numbers.Fill(values->data(), values->size());
            std::vector<float> c_want(c.data(), c.data() + c.size()), d_want(d.data(), d.data() + d.size());
            const bool from_zero = (m + k + next) % 2 != 0;
            mma(c_want.data(), c_ld, x.data(), x_row * 4, v.data(), 0, m, n, k, 0, 0, 0, from_zero);
            mma(d_want.data(), d_ld, x.data(), x_row * 4, w.data(), 0, m, n, k, 0, 0, 0, from_zero);
            pair(c.data(), c_ld, d.data(), d_ld, x.data(), x_row * 4, v.data(), 0, w.data(), 0, m, n, k, ahead, next,
                 next / 2, from_zero);
            for (int64_t i = 0; i < c.size(); ++i)
              ASSERT_EQ(c[i], c_want[i]) << level << " m " << m << " n " << n << " k " << k << " at " << i;
            for (int64_t i = 0; i < d.size(); ++i)
              ASSERT_EQ(d[i], d_want[i]) << level << " m " << m << " n " << n << " k " << k << " at " << i;
          }
        }
      }
    }
  }
}
using RunsTile = void(float*, int64_t, const void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t, int64_t,
                      int64_t, int64_t, int64_t);
using TwoRunsTile = void(float*, int64_t, float*, int64_t, const void*, int64_t, const void*, int64_t, const void*,
                         int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

// Rows of e that run on into each other are rows of k elements that begin e apart, to the bit where they lie so in
// memory; the last ones, which are shorter, have no sums.
TEST(MmaF32Runs, AreRowsThatOverlap) {
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    auto* mma = Tile<MmaF32Tile>("qk_mma_f32", level);
    auto* runs = Tile<RunsTile>("qk_mma_f32_runs", level);
    auto* pair = Tile<TwoRunsTile>("qk_mma_f32_runs_pair", level);
    for (const int64_t m : {1, 2, 3, 7, 12, 13, 27, 38}) {
      for (const int64_t e : {1, 5, 16}) {
        for (const int64_t k : {e, e + 1, 2 * e, 3 * e, 3 * e - 1}) {
          for (const int64_t gap : {0, 3}) {
            const int64_t rows = m - (k - 1) / e, n = 32, x_row = e + gap;
            Guarded<float> x((m - 1) * x_row + e), v(k * 32), w(k * 32), c(m * n), d(m * n);
            for (Guarded<float>* const values : {&x, &v, &w}) numbers.Fill(values->data(), values->size());
            std::vector<float> c_want(m * n, kUntouched), d_want(m * n, kUntouched);
            if (rows > 0) {
              std::fill_n(c_want.begin(), rows * n, 1.0F);
              std::fill_n(d_want.begin(), rows * n, 2.0F);
              std::vector<float> apart(rows * k);
              for (int64_t i = 0; i < rows * k; ++i) apart[i] = x[(i / k + i % k / e) * x_row + i % k % e];
              mma(c_want.data(), n, apart.data(), k * 4, v.data(), 0, rows, n, k, 0, 0, 0, 0);
              mma(d_want.data(), n, apart.data(), k * 4, w.data(), 0, rows, n, k, 0, 0, 0, 0);
            }
            const auto expect = [&](bool two, int64_t ahead, int64_t next) {
              for (int64_t i = 0; i < m * n; ++i) {
                c[i] = i < rows * n ? 1.0F : kUntouched;
                d[i] = i < rows * n ? 2.0F : kUntouched;
              }
              if (two)
                pair(c.data(), n, d.data(), n, x.data(), x_row * 4, v.data(), 0, w.data(), 0, m, n, e, k, ahead, next,
                     0);
              else
                runs(c.data(), n, x.data(), x_row * 4, v.data(), 0, m, n, e, k, ahead, next, 0);
              // Where rows do not lie one behind the other, sums of each row's elements are added up.
              const float apart = gap == 0 ? 0 : 1e-5F * static_cast<float>(k);
              for (int64_t i = 0; i < m * n; ++i) {
                ASSERT_NEAR(c[i], c_want[i], apart) << level << " m " << m << " e " << e << " k " << k << " at " << i;
                if (!two) continue;
                ASSERT_NEAR(d[i], d_want[i], apart) << level << " m " << m << " e " << e << " k " << k << " at " << i;
              }
            };
            expect(false, 0, 0);
            expect(false, 8192, 1000);
            expect(true, 0, 0);
            expect(true, 8192, 1000);
          }
        }
      }
    }
  }
}

TEST(MmaF64, EqualsDouble) { CheckMmas<double>(); }

using PairTile = void(float*, int64_t, const void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t, int64_t,
                      int64_t);

// n rows of k of `w` as words of a panel, with NaN above the last of an odd k, where nothing is to be used.
void FillPairs(const std::vector<BFloat16>& w, int64_t n, int64_t k, Guarded<uint32_t>& panel) {
  for (int64_t i = 0; i < panel.size(); ++i) {
    const int64_t j = i % 32, p = i / 32 * 2;
    const auto bits = [&](int64_t at) -> uint32_t { return j < n && at < k ? w[j * k + at].bits : 0; };
    panel[i] = bits(p) | (p + 1 == k ? 0x7fc00000u : bits(p + 1) << 16);
  }
}

// Rows in memory where reading must end, and a panel whose words begin where it must.
void CheckPairs(std::string_view level, int64_t m, int64_t n, int64_t k, int64_t gap, Numbers& numbers) {
  auto* mma = Tile<PairTile>("qk_mma_bf16_pairs", level);
  const int64_t x_row = k + gap, words = (k + 1) / 2, c_ld = 32 + gap;
  Guarded<BFloat16> x((m - 1) * x_row + k);
  Guarded<uint32_t> panel(words * 32);
  Guarded<float> c((m - 1) * c_ld + n);
  numbers.Fill(x.data(), x.size());
  std::vector<BFloat16> w(n * k);
  numbers.Fill(w.data(), w.size());
  FillPairs(w, n, k, panel);
  const bool from_zero = (m + n + k) % 2 == 0;
  for (int64_t i = 0; i < c.size(); ++i) c[i] = i % c_ld < n ? numbers.Uniform(-1, 1) : kUntouched;
  std::vector<float> before(c.data(), c.data() + c.size());
  mma(c.data(), c_ld, x.data(), x_row * sizeof(BFloat16), panel.data(), 0, m, n, k, words, from_zero);
  for (int64_t i = 0; i < c.size(); ++i) {
    const int64_t r = i / c_ld, j = i % c_ld;
    if (j >= n) {
      ASSERT_EQ(c[i], kUntouched) << level << " m " << m << " n " << n << " wrote column " << j << " of row " << r;
      continue;
    }
    double sum = from_zero ? 0 : before[i], magnitude = std::fabs(sum);
    for (int64_t p = 0; p < k; ++p) {
      const double term = static_cast<double>(ToFloat(x[r * x_row + p])) * ToFloat(w[j * k + p]);
      sum += term;
      magnitude += std::fabs(term);
    }
    ASSERT_NEAR(c[i], sum, Tolerance(magnitude))
        << level << " m " << m << " n " << n << " k " << k << " at " << r << "," << j << " seed " << kSeed;
  }
  // Rows that are computed alone have the same bits.
  const int64_t last = m - 1;
  std::vector<float> alone(before.begin() + last * c_ld, before.end());
  mma(alone.data(), c_ld, x.data() + last * x_row, x_row * sizeof(BFloat16), panel.data(), 0, 1, n, k, words,
      from_zero);
  for (int64_t j = 0; j < n; ++j) ASSERT_EQ(alone[j], c[last * c_ld + j]) << level << " m " << m << " k " << k;
}

TEST(MmaBF16Pairs, EqualsDouble) {
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    for (int64_t m = 1; m <= 33; ++m) {
      for (int64_t n : {1, 5, 8, 13, 16, 17, 31, 32}) CheckPairs(level, m, n, 37, n % 3, numbers);
      for (int64_t k : {1, 2, 3, 4, 5, 7, 8, 67, 130}) CheckPairs(level, m, 32, k, k % 4, numbers);
    }
    CheckPairs(level, 53, 29, 19, 2029, numbers);  // rows 4 KiB apart
    for (int64_t n : {13, 32}) CheckPairs(level, 70, n, 569, 1, numbers);
  }
}

// Words that are fewer than k needs end the sums; no row is read beyond.
TEST(MmaBF16Pairs, EndsWithThePanel) {
  for (const std::string& level : HostLevels()) {
    auto* mma = Tile<PairTile>("qk_mma_bf16_pairs", level);
    const std::vector<BFloat16> x(7, {FloatToBFloat16(1)});
    const std::vector<uint32_t> panel(32 * 2, 0x3f803f80);
    float c[32] = {};
    mma(c, 32, x.data(), 14, panel.data(), 0, 1, 32, 7, 2, 0);
    for (const float sum : c) ASSERT_EQ(sum, 4) << level;
  }
}

using PartsTile = void(float*, int64_t, const void*, int64_t, const void*, int64_t, const void*, int64_t, const void*,
                       int64_t, int64_t, int64_t, int64_t, int64_t);

// Both parts of rows, as far apart as they are or further, by one or two panels.
void CheckParts(std::string_view level, int64_t m, int64_t n, int64_t k, bool two, Numbers& numbers) {
  auto* mma = Tile<PartsTile>("qk_mma_bf16_parts", level);
  const int64_t x_row = k + 1, y_row = k + 3, words = (k + 1) / 2, c_ld = 33;
  Guarded<BFloat16> x((m - 1) * x_row + k), y((m - 1) * y_row + k);
  Guarded<uint32_t> first(words * 32), second(words * 32);
  Guarded<float> c((m - 1) * c_ld + n);
  numbers.Fill(x.data(), x.size());
  numbers.Fill(y.data(), y.size());
  std::vector<BFloat16> w(n * k), v(n * k);
  numbers.Fill(w.data(), w.size());
  numbers.Fill(v.data(), v.size());
  FillPairs(w, n, k, first);
  FillPairs(v, n, k, second);
  for (int64_t i = 0; i < c.size(); ++i) c[i] = i % c_ld < n ? numbers.Uniform(-1, 1) : kUntouched;
  const std::vector<float> before(c.data(), c.data() + c.size());
  const auto multiply = [&](float* to, int64_t row, int64_t rows) {
    mma(to, c_ld, x.data() + row * x_row, x_row * sizeof(BFloat16), y.data() + row * y_row, y_row * sizeof(BFloat16),
        first.data(), 0, two ? second.data() : nullptr, 0, rows, n, k, words);
  };
  multiply(c.data(), 0, m);
  for (int64_t i = 0; i < c.size(); ++i) {
    const int64_t r = i / c_ld, j = i % c_ld;
    if (j >= n) {
      ASSERT_EQ(c[i], kUntouched) << level << " m " << m << " n " << n << " wrote column " << j << " of row " << r;
      continue;
    }
    double sum = before[i], magnitude = std::fabs(sum);
    for (int64_t p = 0; p < k; ++p) {
      const double of_x = ToFloat(x[r * x_row + p]), of_y = ToFloat(y[r * y_row + p]), of_w = ToFloat(w[j * k + p]),
                   of_v = two ? ToFloat(v[j * k + p]) : 0;
      sum += (of_x + of_y) * of_w + of_x * of_v;
      magnitude += std::fabs(of_x * of_w) + std::fabs(of_y * of_w) + std::fabs(of_x * of_v);
    }
    ASSERT_NEAR(c[i], sum, Tolerance(magnitude))
        << level << " m " << m << " n " << n << " k " << k << " at " << r << "," << j << " seed " << kSeed;
  }
  // Rows that are computed alone have the same bits.
  std::vector<float> alone(before.begin() + (m - 1) * c_ld, before.end());
  multiply(alone.data(), m - 1, 1);
  for (int64_t j = 0; j < n; ++j) ASSERT_EQ(alone[j], c[(m - 1) * c_ld + j]) << level << " m " << m << " k " << k;
}

TEST(MmaBF16Parts, EqualsDouble) {
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    for (const bool two : {false, true}) {
      for (int64_t m = 1; m <= 33; ++m) CheckParts(level, m, 32, 37, two, numbers);
      for (int64_t n : {1, 13, 16, 17, 31}) CheckParts(level, 49, n, 67, two, numbers);
      for (int64_t k : {1, 2, 31, 32, 33, 64, 569}) CheckParts(level, 70, 32, k, two, numbers);
    }
  }
}

void CheckPairPack(std::string_view level, int64_t rows, int64_t k, int64_t gap, Numbers& numbers) {
  const int64_t row = k + gap, words = (k + 1) / 2;
  Guarded<BFloat16> src((rows - 1) * row + k);
  Guarded<uint32_t> dst(words * 32);
  for (int64_t i = 0; i < src.size(); ++i) src[i].bits = static_cast<uint16_t>(numbers.Below(65536));  // NaN as well
  for (int64_t i = 0; i < dst.size(); ++i) dst[i] = 0xdeadbeef;
  Tile<PackTile>("qk_pack_pairs", level)(dst.data(), 0, src.data(), row * sizeof(BFloat16), rows, k);
  for (int64_t i = 0; i < dst.size(); ++i) {
    const int64_t p = i / 32 * 2, j = i % 32;
    const auto bits = [&](int64_t at) -> uint32_t { return j < rows && at < k ? src[j * row + at].bits : 0; };
    ASSERT_EQ(dst[i], bits(p) | bits(p + 1) << 16)
        << level << " rows " << rows << " k " << k << " at " << p << "," << j;
  }
}

template <typename T>
void CheckPack(std::string_view level, int64_t rows, int64_t k, int64_t gap, Numbers& numbers) {
  auto* pack = Tile<PackTile>(std::string("qk_pack_") + TypeName<T>() + "_kn32", level);
  const int64_t row = k + gap;
  Guarded<T> src((rows - 1) * row + k);
  Guarded<float> dst(k * 32);
  numbers.Fill(src.data(), src.size());
  for (int64_t i = 0; i < dst.size(); ++i) dst[i] = kUntouched;
  pack(dst.data(), k * 128, src.data(), row * sizeof(T), rows, k);
  for (int64_t i = 0; i < dst.size(); ++i) {
    const int64_t p = i / 32, j = i % 32;
    ASSERT_EQ(dst[i], j < rows ? ToFloat(src[j * row + p]) : 0.0f)
        << TypeName<T>() << " " << level << " rows " << rows << " k " << k << " at " << p << "," << j;
  }
}

void CheckDoublePack(std::string_view level, int64_t rows, int64_t k, int64_t gap, Numbers& numbers) {
  const int64_t row = k + gap;
  Guarded<double> src((rows - 1) * row + k), dst(k * 32);
  for (int64_t i = 0; i < src.size(); ++i) src[i] = numbers.Uniform(-1, 1) / 3.0;
  for (int64_t i = 0; i < dst.size(); ++i) dst[i] = kUntouched;
  Tile<PackTile>("qk_pack_f64_kn32", level)(dst.data(), k * 256, src.data(), row * sizeof(double), rows, k);
  for (int64_t i = 0; i < dst.size(); ++i) {
    const int64_t p = i / 32, j = i % 32;
    ASSERT_EQ(dst[i], j < rows ? src[j * row + p] : 0)
        << level << " rows " << rows << " k " << k << " at " << p << "," << j;
  }
}

TEST(PackFloat, Transposes) {
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    for (int64_t k : {1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 31, 32, 37, 64, 67}) {
      for (int64_t rows = 1; rows <= 32; ++rows) {
        CheckPack<float>(level, rows, k, rows % 3, numbers);
        CheckPack<uint16_t>(level, rows, k, rows % 3, numbers);
        CheckPack<BFloat16>(level, rows, k, rows % 3, numbers);
        CheckPairPack(level, rows, k, rows % 3, numbers);
        CheckDoublePack(level, rows, k, rows % 3, numbers);
      }
    }
    // Rows that share sets of the first cache.
    for (int64_t k : {15, 16, 31, 32, 47, 67}) {
      CheckPack<float>(level, 32, k, 512 - k, numbers);
      CheckPack<uint16_t>(level, 32, k, 1024 - k, numbers);
      CheckPack<BFloat16>(level, 32, k, 2048 - k, numbers);
    }
  }
}

// Rows to columns, whatever the bits: of elements of as many bytes as T has.
template <typename T>
void CheckTurn(std::string_view level, int64_t rows, int64_t k, int64_t gap, Numbers& numbers) {
  auto* turn = Tile<PackTile>("qk_turn_" + std::to_string(sizeof(T)), level);
  const int64_t row = k + gap, to = rows + 2 * gap;
  Guarded<T> src((rows - 1) * row + k), dst((k - 1) * to + rows);
  for (int64_t i = 0; i < src.size(); ++i) src[i] = static_cast<T>(numbers.Below(INT64_MAX));
  for (int64_t i = 0; i < dst.size(); ++i) dst[i] = 77;
  turn(dst.data(), to * sizeof(T), src.data(), row * sizeof(T), rows, k);
  for (int64_t i = 0; i < dst.size(); ++i) {
    const int64_t p = i / to, j = i % to;
    ASSERT_EQ(dst[i], j < rows ? src[j * row + p] : T{77})
        << sizeof(T) << " bytes " << level << " rows " << rows << " k " << k << " at " << p << "," << j;
  }
}

TEST(Turn, MovesBits) {
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    for (int64_t k : {1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 131}) {
      for (int64_t rows : {1, 2, 4, 5, 8, 11, 15, 16, 17, 23, 31, 32, 37, 64, 67, 129}) {
        CheckTurn<uint8_t>(level, rows, k, rows % 3, numbers);
        CheckTurn<uint16_t>(level, rows, k, rows % 3, numbers);
        CheckTurn<uint32_t>(level, rows, k, rows % 3, numbers);
        CheckTurn<uint64_t>(level, rows, k, rows % 3, numbers);
      }
    }
    // Few elements a row, which lie behind each other, become few rows, and back.
    for (int64_t few : {2, 3, 4, 5, 6, 7, 8, 9}) {
      for (int64_t many : {1, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 131, 193}) {
        for (const auto& [rows, k] : {std::pair(few, many), std::pair(many, few)}) {
          CheckTurn<uint8_t>(level, rows, k, 0, numbers);
          CheckTurn<uint16_t>(level, rows, k, 0, numbers);
          CheckTurn<uint32_t>(level, rows, k, 0, numbers);
          CheckTurn<uint64_t>(level, rows, k, 0, numbers);
        }
      }
    }
    CheckTurn<uint32_t>(level, 37, 37, 1024 - 37, numbers);  // rows 4 KiB apart
    CheckTurn<uint64_t>(level, 19, 37, 512 - 37, numbers);
  }
}

}  // namespace
}  // namespace quern::simd
