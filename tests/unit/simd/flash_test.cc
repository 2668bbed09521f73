// The attention step against attention in double, over masks, soft cap, bias and several steps, at every level of the
// host.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "unit/simd/float_support.h"

namespace quern::simd {
namespace {

using FlashTile = void(float*, int64_t, float*, int64_t, float*, int64_t, const void*, int64_t, const void*, int64_t,
                       const void*, int64_t, const void*, int64_t, const void*, int64_t, const void*, int64_t, int64_t,
                       int64_t, int64_t, float, float, int64_t, void*);

constexpr uint32_t kSeed = 48611;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

enum class Mask { kFull, kCausal, kWindow, kRagged, kOneRow };
enum class Bias { kNone, kFinite, kSomeInfinite };

struct Case {
  int64_t r, d;
  std::vector<int64_t> steps;  // keys of each step
  Mask mask = Mask::kFull;
  Bias bias = Bias::kNone;
  float softcap = 0.0f;
  int64_t gap = 0;  // elements between rows of q, k, v, o and bias
  int64_t many = 0;

  std::string ToString() const {
    std::string text = "r " + std::to_string(r) + " d " + std::to_string(d) + " t";
    for (int64_t t : steps) text += " " + std::to_string(t);
    return text + " mask " + std::to_string(static_cast<int>(mask)) + " bias " +
           std::to_string(static_cast<int>(bias)) + " softcap " + std::to_string(softcap) + " gap " +
           std::to_string(gap) + " many " + std::to_string(many) + " seed " + std::to_string(kSeed);
  }
};

// Keys [lo, hi) over all steps that row i may see.
std::pair<int64_t, int64_t> Visible(const Case& c, int64_t i, int64_t keys, Numbers& numbers) {
  switch (c.mask) {
    case Mask::kFull: return {0, keys};
    case Mask::kCausal: return {0, keys - c.r + i + 1};  // with keys < r, the first rows see nothing
    case Mask::kWindow: return {keys - c.r + i - 8, keys - c.r + i + 1};
    case Mask::kRagged: {
      if (numbers.Below(3) == 0) return {5, 5 - numbers.Below(3)};  // nothing, also by hi < lo
      const int64_t lo = numbers.Below(keys);
      return {lo - numbers.Below(2) * 1000, lo + 1 + numbers.Below(keys - lo + 2)};
    }
    case Mask::kOneRow:
      return i == c.r / 2 ? std::pair<int64_t, int64_t>{keys / 3, keys / 3 + 1} : std::pair<int64_t, int64_t>{0, 0};
  }
  return {0, 0};
}

// The step for queries of Q, keys of K and values of V.
template <typename Q, typename K, typename V>
std::string StepName() {
  const std::string keys = TypeName<K>(), values = TypeName<V>();
  return "qk_flash_step_" + keys + (std::is_same_v<Q, float> ? "" : "_pairs") + (values == keys ? "" : "_" + values);
}

template <typename Q, typename K, typename V>
void CheckFlash(std::string_view level, const Case& c, Numbers& numbers) {
  const std::string name = StepName<Q, K, V>();
  SCOPED_TRACE(name + " " + std::string(level) + " " + c.ToString());
  auto* flash = Tile<FlashTile>(name, level);
  const int64_t r = c.r, d = c.d, row = d + c.gap;
  int64_t keys = 0;
  for (int64_t t : c.steps) keys += t;
  const float scale = 1.5f / std::sqrt(static_cast<float>(d));

  Guarded<Q> q((r - 1) * row + d);
  Guarded<float> o((r - 1) * row + d), m(r), l(r), bias((r - 1) * (keys + c.gap) + keys);
  Guarded<K> k((keys - 1) * row + d);
  Guarded<V> v((keys - 1) * row + d);
  Guarded<int32_t> lo(r), hi(r);
  for (int64_t i = 0; i < q.size(); ++i) q[i] = FromFloat<Q>(numbers.Uniform(-2.0f, 2.0f));
  numbers.Fill(k.data(), k.size());
  numbers.Fill(v.data(), v.size());
  for (int64_t i = 0; i < bias.size(); ++i) {
    bias[i] = c.bias == Bias::kSomeInfinite && numbers.Below(4) == 0 ? -kInfinity : numbers.Uniform(-3.0f, 3.0f);
  }
  if (c.bias == Bias::kSomeInfinite) {
    for (int64_t j = 0; j < keys; ++j) bias[(r - 1) * (keys + c.gap) + j] = -kInfinity;  // sees keys, all of weight 0
  }
  std::vector<std::pair<int64_t, int64_t>> visible;
  for (int64_t i = 0; i < r; ++i) visible.push_back(Visible(c, i, keys, numbers));
  // What no row may see must not matter: neither an old cache row nor a NaN in it.
  for (int64_t j = 0; j < keys; ++j) {
    bool seen = false, before = false, after = false;
    for (const auto& [first, last] : visible) {
      if (first >= last) continue;
      seen |= first <= j && j < last;
      before |= first <= j;
      after |= j < last;
    }
    if (seen || (before && after)) continue;
    for (int64_t p = 0; p < d; ++p) k[j * row + p] = FromFloat<K>(kNan), v[j * row + p] = FromFloat<V>(kNan);
  }
  for (int64_t i = 0; i < o.size(); ++i) o[i] = i % row < d ? 0.0f : 7.75f;
  for (int64_t i = 0; i < r; ++i) m[i] = -kInfinity, l[i] = 0.0f;

  std::vector<float> workspace_room((512 * d + 32768) / 4 + 16, kNan);
  void* workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace_room.data()) + 63) / 64 * 64);
  int64_t base = 0;
  for (int64_t t : c.steps) {
    for (int64_t i = 0; i < r; ++i) {
      lo[i] = static_cast<int32_t>(visible[i].first - base);
      hi[i] = static_cast<int32_t>(visible[i].second - base);
    }
    const bool biased = c.bias != Bias::kNone;
    flash(o.data(), row, m.data(), 1, l.data(), 1, q.data(), row * sizeof(Q), &k[base * row], row * sizeof(K),
          &v[base * row], row * sizeof(V), lo.data(), 0, hi.data(), 0, biased ? &bias[base] : nullptr,
          biased ? (keys + c.gap) * sizeof(float) : 0, r, d, t, scale, c.softcap, c.many, workspace);
    base += t;
  }

  for (int64_t i = 0; i < r; ++i) {
    std::vector<double> score(keys, -kInfinity);
    double most = -kInfinity;
    for (int64_t j = std::max<int64_t>(0, visible[i].first); j < std::min(keys, visible[i].second); ++j) {
      double s = 0;
      for (int64_t p = 0; p < d; ++p) s += static_cast<double>(ToFloat(q[i * row + p])) * ToFloat(k[j * row + p]);
      s *= scale;
      if (c.softcap > 0) s = c.softcap * std::tanh(s / c.softcap);
      if (c.bias != Bias::kNone) s += bias[i * (keys + c.gap) + j];
      score[j] = s;
      most = std::max(most, s);
    }
    if (most == -kInfinity) {
      ASSERT_EQ(m[i], -kInfinity) << "row " << i;
      ASSERT_EQ(l[i], 0.0f) << "row " << i;
    } else {
      ASSERT_NEAR(m[i], most, 1e-5) << "row " << i;
      double sum = 0;
      for (double s : score) sum += std::exp(s - most);
      ASSERT_NEAR(l[i], sum, 1e-5 * sum) << "row " << i;
    }
    for (int64_t p = 0; p < row && i * row + p < o.size(); ++p) {
      if (p >= d) {
        ASSERT_EQ(o[i * row + p], 7.75f) << "gap of o after row " << i;
        continue;
      }
      double sum = 0, magnitude = 0;
      for (int64_t j = 0; j < keys && most != -kInfinity; ++j) {
        if (score[j] == -kInfinity) continue;
        const double term = std::exp(score[j] - most) * ToFloat(v[j * row + p]);
        sum += term;
        magnitude += std::fabs(term);
      }
      ASSERT_NEAR(o[i * row + p], sum, 1e-5 * magnitude) << "row " << i << " column " << p;
    }
  }
}

template <typename Q, typename K, typename V>
void CheckRows(std::string_view level, const Case& c, Numbers& numbers) {
  CheckFlash<Q, K, V>(level, c, numbers);
  if (c.r > 8) return;
  Case some = c;
  some.many = 1;
  CheckFlash<Q, K, V>(level, some, numbers);
}

// What there is code of its own for: each dtype of keys and of values, and queries in pairs.
void CheckAlike(const Case& c, Numbers& numbers) {
  for (const std::string& level : HostLevels()) {
    CheckRows<float, float, float>(level, c, numbers);
    CheckRows<float, uint16_t, uint16_t>(level, c, numbers);
    CheckRows<BFloat16, BFloat16, BFloat16>(level, c, numbers);
  }
}

TEST(FlashStep, DTypes) {
  Numbers numbers(kSeed);
  const auto of_keys = [&]<typename K>(std::string_view level, const Case& c) {
    CheckRows<float, K, float>(level, c, numbers);
    CheckRows<float, K, uint16_t>(level, c, numbers);
    CheckRows<float, K, BFloat16>(level, c, numbers);
  };
  for (const std::string& level : HostLevels()) {
    for (int64_t r : {1, 2, 4, 7, 9, 40}) {
      for (int64_t d : {5, 31, 64, 72}) {
        for (Mask mask : {Mask::kFull, Mask::kRagged}) {
          const Case c = {r, d, {128, 19}, mask, Bias::kNone, 0, d % 2};
          of_keys.operator()<float>(level, c);
          of_keys.operator()<uint16_t>(level, c);
          of_keys.operator()<BFloat16>(level, c);
          CheckRows<BFloat16, BFloat16, float>(level, c, numbers);
          CheckRows<BFloat16, BFloat16, uint16_t>(level, c, numbers);
        }
      }
    }
  }
}

TEST(FlashStep, HeadSizes) {
  Numbers numbers(kSeed);
  for (int64_t d : {1, 7, 8, 12, 16, 24, 29, 40, 64, 72, 80, 96, 100, 112, 128, 160, 192, 256}) {
    for (int64_t r : {1, 2, 5, 13, 31}) CheckAlike({r, d, {128, 19}}, numbers);
  }
}

TEST(FlashStep, RowsAndKeys) {
  Numbers numbers(kSeed);
  for (int64_t r = 1; r <= 64; r += r < 29 ? 1 : 7) {
    for (int64_t t : {1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 127, 128})
      CheckAlike({r, 24, {t}, Mask::kFull, Bias::kNone, 0, 5}, numbers);
  }
  CheckAlike({64, 32, {128, 128, 64}}, numbers);
}

TEST(FlashStep, Masks) {
  Numbers numbers(kSeed);
  for (Mask mask : {Mask::kCausal, Mask::kWindow, Mask::kRagged, Mask::kOneRow}) {
    for (int64_t r : {1, 2, 3, 4, 6, 8, 9, 17, 29, 53, 64}) {
      for (int64_t t : {5, 23, 64}) {
        CheckAlike({r, 40, {t}, mask}, numbers);
        CheckAlike({r, 16, {128, t, 64}, mask}, numbers);
      }
    }
  }
}

TEST(FlashStep, SoftCapAndBias) {
  Numbers numbers(kSeed);
  for (float softcap : {0.0f, 0.5f, 50.0f}) {
    for (Bias bias : {Bias::kNone, Bias::kFinite, Bias::kSomeInfinite}) {
      for (Mask mask : {Mask::kFull, Mask::kCausal, Mask::kRagged}) {
        for (int64_t r : {1, 2, 3, 7, 11, 37}) CheckAlike({r, 24, {61, 13}, mask, bias, softcap, 3}, numbers);
      }
    }
  }
}

// Large scores: exp(s - max) underflows to 0 instead of to a negative or a NaN; the soft cap saturates.
TEST(FlashStep, LargeScores) {
  for (const std::string& level : HostLevels()) {
    auto* flash = Tile<FlashTile>("qk_flash_step_f32", level);
    for (int64_t r : {1, 12}) {
      for (float softcap : {0.0f, 30.0f}) {
        const int64_t d = 16, t = 3;
        std::vector<float> q(r * d, 100.0f), k(t * d), v(t * d), o(r * d, 0.0f), m(r, -kInfinity), l(r, 0.0f);
        for (int64_t j = 0; j < t; ++j) {
          for (int64_t p = 0; p < d; ++p) k[j * d + p] = (j - 1) * 50.0f, v[j * d + p] = j + 1;
        }
        std::vector<int32_t> lo(r, 0), hi(r, 3);
        std::vector<float> workspace(128 * d + 8192);
        flash(o.data(), d, m.data(), 1, l.data(), 1, q.data(), d * 4, k.data(), d * 4, v.data(), d * 4, lo.data(), 0,
              hi.data(), 0, nullptr, 0, r, d, t, 1.0f, softcap, 0, workspace.data());
        for (int64_t i = 0; i < r; ++i) {
          EXPECT_EQ(m[i], softcap > 0 ? 30.0f : 80000.0f) << level;
          EXPECT_NEAR(l[i], 1.0f, 1e-6) << level;
          EXPECT_NEAR(o[i * d], 3.0f, 1e-5) << level;
        }
      }
    }
  }
}

// A row that sees nothing keeps whatever it had, to the bit; a NaN that is seen is not lost.
TEST(FlashStep, EmptyRowsAndNan) {
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    auto* flash = Tile<FlashTile>("qk_flash_step_f16", level);
    for (int64_t r : {1, 3, 8, 9, 27}) {
      const int64_t d = 20, t = 17;
      std::vector<float> q(r * d), o(r * d), m(r), l(r);
      std::vector<uint16_t> k(t * d), v(t * d);
      numbers.Fill(q.data(), r * d);
      numbers.Fill(o.data(), r * d);
      numbers.Fill(m.data(), r);
      numbers.Fill(l.data(), r);
      numbers.Fill(k.data(), t * d);
      numbers.Fill(v.data(), t * d);
      std::vector<int32_t> lo(r, 3), hi(r, 3);
      std::vector<float> workspace(128 * d + 8192);
      const std::vector<float> o0 = o, m0 = m, l0 = l;
      const auto step = [&] {
        flash(o.data(), d, m.data(), 1, l.data(), 1, q.data(), d * 4, k.data(), d * 2, v.data(), d * 2, lo.data(), 0,
              hi.data(), 0, nullptr, 0, r, d, t, 0.3f, 0.0f, r % 2, workspace.data());
      };
      step();
      EXPECT_EQ(o, o0) << level;
      EXPECT_EQ(m, m0) << level;
      EXPECT_EQ(l, l0) << level;
      for (int64_t i = 0; i < r; i += 2) hi[i] = 17;  // every other row
      step();
      for (int64_t i = 1; i < r; i += 2) {
        EXPECT_EQ(m[i], m0[i]) << level;
        EXPECT_EQ(l[i], l0[i]) << level;
        for (int64_t p = 0; p < d; ++p) EXPECT_EQ(o[i * d + p], o0[i * d + p]) << level;
      }
      k[5 * d] = 0x7e00;  // NaN in key 5: rows that see it become NaN
      step();
      for (int64_t i = 0; i < r; ++i) EXPECT_EQ(std::isnan(o[i * d]), i % 2 == 0) << level << " row " << i;
    }
  }
}

}  // namespace
}  // namespace quern::simd
