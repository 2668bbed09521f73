#include "base/formats/scale_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

// The arithmetic is part of the result; clang contracts within an expression unless told.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

namespace quern::formats {
namespace {

// Where q4_K and q5_K keep six bits of scale and of minimum of group `g`.
void PutScales(uint8_t* scales, int g, int scale, int minimum) {
  if (g < 4) {
    scales[g] = static_cast<uint8_t>(scale);
    scales[g + 4] = static_cast<uint8_t>(minimum);
    return;
  }
  scales[g + 4] = static_cast<uint8_t>((scale & 15) | (minimum & 15) << 4);
  scales[g - 4] = static_cast<uint8_t>(scales[g - 4] | scale >> 4 << 6);
  scales[g] = static_cast<uint8_t>(scales[g] | minimum >> 4 << 6);
}

int ScaleAt(const uint8_t* scales, int g) {
  return g < 4 ? scales[g] & 63 : (scales[g + 4] & 15) | scales[g - 4] >> 6 << 4;
}
int MinimumAt(const uint8_t* scales, int g) {
  return g < 4 ? scales[g + 4] & 63 : scales[g + 4] >> 4 | scales[g] >> 6 << 4;
}

// The codes up to `most` of what scales and minimums make of 256 elements; they stay where a group has no scale.
void PutWithMinimums(const float* x, int most, float d, float dmin, const uint8_t* scales, const uint8_t* minimums,
                     uint8_t* block, uint8_t* codes) {
  PutHalf(block, d);
  PutHalf(block + 2, dmin);
  for (int g = 0; g < 8; ++g) PutScales(block + 4, g, scales[g], minimums[g]);
  const float half_d = HalfAt(block), half_min = HalfAt(block + 2);
  for (int g = 0; g < 8; ++g) {
    const float group_d = half_d * static_cast<float>(ScaleAt(block + 4, g)),
                group_min = half_min * static_cast<float>(MinimumAt(block + 4, g));
    if (group_d == 0) continue;
    for (int j = 32 * g; j < 32 * g + 32; ++j)
      codes[j] = static_cast<uint8_t>(Clamped(NearestInt((x[j] + group_min) / group_d), 0, most));
  }
}

}  // namespace

float Farthest(std::span<const float> x) {
  float farthest = 0;
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(farthest)) farthest = value;
  }
  return farthest;
}

void Weigh(std::span<const float> x, const float* importance, float spread, float* weights) {
  for (size_t j = 0; j < x.size(); ++j) weights[j] = importance[j] * std::sqrt(spread + x[j] * x[j]);
}

float SumOf(std::span<const float> x) {
  float sum = 0;
  for (const float value : x) sum += value;
  return sum;
}

float SumOfSquares(std::span<const float> x) {
  float sum = 0;
  for (const float value : x) sum += value * value;
  return sum;
}

void PackNibbles(const uint8_t* codes, uint8_t* bytes) {
  for (int j = 0; j < 16; ++j) bytes[j] = static_cast<uint8_t>((codes[j] & 15) | codes[j + 16] << 4);
}

void PackFifthBits(const uint8_t* codes, uint8_t* bytes) {
  std::memset(bytes, 0, 4);
  for (int j = 0; j < 32; ++j) bytes[j / 8] = static_cast<uint8_t>(bytes[j / 8] | (codes[j] >> 4 & 1) << j % 8);
}

void PackPairs(const uint8_t* codes, uint8_t* bytes) {
  for (int j = 0; j < 64; ++j) {
    const uint8_t* of = codes + j / 32 * 128 + j % 32;
    bytes[j] = static_cast<uint8_t>((of[0] & 3) | (of[32] & 3) << 2 | (of[64] & 3) << 4 | (of[96] & 3) << 6);
  }
}

float QuantiseAround(const float* x, int zero, uint8_t* codes) {
  const float d = Farthest({x, 32}) / static_cast<float>(-zero), inverse = d != 0 ? 1.0f / d : 0.0f;
  for (int j = 0; j < 32; ++j) {
    const int code = ToByte(x[j] * inverse + (static_cast<float>(zero) + 0.5f));
    codes[j] = static_cast<uint8_t>(code < 2 * zero ? code : 2 * zero - 1);
  }
  return d;
}

float QuantiseBetween(const float* x, int most, uint8_t* codes, float& least) {
  least = std::numeric_limits<float>::max();
  float greatest = -least;
  for (int j = 0; j < 32; ++j) {
    if (x[j] < least) least = x[j];
    if (x[j] > greatest) greatest = x[j];
  }
  const float d = (greatest - least) / static_cast<float>(most), inverse = d != 0 ? 1.0f / d : 0.0f;
  for (int j = 0; j < 32; ++j) {
    const int code = ToByte((x[j] - least) * inverse + 0.5f);
    codes[j] = static_cast<uint8_t>(code < most ? code : most);
  }
  return d;
}

float SearchAffine(std::span<const float> x, const float* weights, const AffineSearch& search, uint8_t* codes,
                   float& taken) {
  const size_t n = x.size();
  const float most = static_cast<float>(search.most);
  float least = x[0], greatest = x[0], sum_w = weights[0], sum_x = sum_w * x[0];
  for (size_t i = 1; i < n; ++i) {
    if (x[i] < least) least = x[i];
    if (x[i] > greatest) greatest = x[i];
    const float w = weights[i];
    sum_w += w;
    sum_x += w * x[i];
  }
  if (least > 0) least = 0;
  if (greatest == least) {
    std::memset(codes, 0, n);
    taken = -least;
    return 0;
  }
  // The first try is the range itself; `minimum` changes with the best, what is tried does not.
  float minimum = least, inverse = most / (greatest - least), scale = 1 / inverse, best = 0;
  const auto code_of = [&](size_t i) { return Clamped(NearestInt(inverse * (x[i] - minimum)), 0, search.most); };
  const auto error_of = [&](float difference) {
    return search.magnitudes ? std::fabs(difference) : difference * difference;
  };
  for (size_t i = 0; i < n; ++i) {
    codes[i] = static_cast<uint8_t>(code_of(i));
    best += weights[i] * error_of(scale * static_cast<float>(codes[i]) + minimum - x[i]);
  }
  uint8_t tried[32];
  for (int step = 0; step <= search.steps; ++step) {
    inverse = (search.start + search.step * static_cast<float>(step) + most) / (greatest - minimum);
    float sum_l = 0, sum_l2 = 0, sum_xl = 0;
    for (size_t i = 0; i < n; ++i) {
      tried[i] = static_cast<uint8_t>(code_of(i));
      const float w = weights[i], l = static_cast<float>(tried[i]);
      sum_l += w * l;
      sum_l2 += w * l * l;
      sum_xl += w * l * x[i];
    }
    const float determinant = sum_w * sum_l2 - sum_l * sum_l;
    if (!(determinant > 0)) continue;
    float this_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
    float this_minimum = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
    if (this_minimum > 0) {
      this_minimum = 0;
      this_scale = sum_xl / sum_l2;
    }
    float error = 0;
    for (size_t i = 0; i < n; ++i)
      error += weights[i] * error_of(this_scale * static_cast<float>(tried[i]) + this_minimum - x[i]);
    if (!(error < best)) continue;
    std::memcpy(codes, tried, n);
    best = error;
    scale = this_scale;
    minimum = this_minimum;
  }
  taken = -minimum;
  return scale;
}

float SearchAround(std::span<const float> x, const float* weights, int zero, uint8_t* codes) {
  const size_t n = x.size();
  const float farthest = Farthest(x);
  std::memset(codes, 0, n);
  if (std::fabs(farthest) < kLeastOfGroup) return 0;
  float inverse = 0, sum_lx = 0, sum_l2 = 0;
  const auto code_of = [&](size_t j) { return Clamped(NearestInt(inverse * x[j]), -zero, zero - 1); };
  const auto sum = [&] {
    sum_lx = sum_l2 = 0;
    for (size_t j = 0; j < n; ++j) {
      const float w = weights[j], l = static_cast<float>(code_of(j));
      sum_lx += w * x[j] * l;
      sum_l2 += w * l * l;
    }
  };
  const auto keep = [&] {
    for (size_t j = 0; j < n; ++j) codes[j] = static_cast<uint8_t>(code_of(j) + zero);
  };
  inverse = static_cast<float>(-zero) / farthest;
  sum();
  keep();
  float scale = sum_l2 != 0 ? sum_lx / sum_l2 : 0, best = scale * sum_lx;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    inverse = -(static_cast<float>(zero) + 0.1f * static_cast<float>(step)) / farthest;
    sum();
    if (!(sum_l2 > 0 && sum_lx * sum_lx > best * sum_l2)) continue;
    keep();
    scale = sum_lx / sum_l2;
    best = scale * sum_lx;
  }
  return scale;
}

float SearchPositive(std::span<const float> x, const float* weights, int most, uint8_t* codes) {
  const size_t n = x.size();
  float greatest = 0;
  for (const float value : x) {
    if (value > greatest) greatest = value;
  }
  std::memset(codes, 0, n);
  if (greatest < kLeastOfGroup) return 0;
  const auto code_of = [&](size_t i, float inverse) {
    const int code = NearestInt(inverse * x[i]);
    return code < most ? code : most;
  };
  const auto error_of = [&](float inverse, bool as_bytes) {
    const float scale = 1 / inverse;
    float error = 0;
    for (size_t i = 0; i < n; ++i) {
      const int code = code_of(i, inverse);
      const float difference = x[i] - scale * static_cast<float>(as_bytes ? static_cast<uint8_t>(code) : code);
      error += weights[i] * difference * difference;
    }
    return error;
  };
  float inverse = static_cast<float>(most) / greatest, least = error_of(inverse, true);
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) continue;
    const float tried = (0.1f * static_cast<float>(step) + static_cast<float>(most)) / greatest;
    const float error = error_of(tried, false);
    if (!(error < least)) continue;
    least = error;
    inverse = tried;
  }
  float sum_lx = 0, sum_l2 = 0;
  for (size_t i = 0; i < n; ++i) {
    const int code = code_of(i, inverse);
    codes[i] = static_cast<uint8_t>(code);
    const float w = weights[i], l = static_cast<float>(code);
    sum_lx += w * x[i] * l;
    sum_l2 += w * l * l;
  }
  for (int round = 0; round < 5; ++round) {
    bool changed = false;
    for (size_t i = 0; i < n; ++i) {
      const float w = weights[i], l = static_cast<float>(codes[i]);
      float lx = sum_lx - w * x[i] * l, l2 = sum_l2 - w * l * l;
      if (!(lx > 0 && l2 > 0)) continue;
      const int near = NearestInt(x[i] * l2 / lx), other = near < most ? near : most;
      if (other == codes[i]) continue;
      lx += w * x[i] * static_cast<float>(other);
      l2 += w * static_cast<float>(other) * static_cast<float>(other);
      if (!(lx * lx * sum_l2 > sum_lx * sum_lx * l2)) continue;
      codes[i] = static_cast<uint8_t>(other);
      sum_lx = lx;
      sum_l2 = l2;
      changed = true;
    }
    if (!changed) break;
  }
  return sum_l2 > 0 ? sum_lx / sum_l2 : 0;
}

void QuantiseWithMinimums(const float* x, const AffineSearch& search, uint8_t* block, uint8_t* codes) {
  float scales[8], minimums[8], most_scale = 0, most_minimum = 0;
  for (int g = 0; g < 8; ++g) {
    const std::span<const float> of(x + 32 * g, 32);
    float weights[32];
    const float mean = std::sqrt(SumOfSquares(of) / 32);
    for (int j = 0; j < 32; ++j) weights[j] = mean + std::fabs(of[j]);
    scales[g] = SearchAffine(of, weights, search, codes + 32 * g, minimums[g]);
    if (scales[g] > most_scale) most_scale = scales[g];
    if (minimums[g] > most_minimum) most_minimum = minimums[g];
  }
  const float by_scale = most_scale > 0 ? 63.0f / most_scale : 0.0f;
  const float by_minimum = most_minimum > 0 ? 63.0f / most_minimum : 0.0f;
  uint8_t scale_codes[8], minimum_codes[8];
  for (int g = 0; g < 8; ++g) {
    const auto six_bits = [](float value) {
      const uint8_t whole = static_cast<uint8_t>(NearestInt(value));
      return whole < 63 ? whole : uint8_t{63};
    };
    scale_codes[g] = six_bits(by_scale * scales[g]);
    minimum_codes[g] = six_bits(by_minimum * minimums[g]);
  }
  PutWithMinimums(x, search.most, most_scale / 63.0f, most_minimum / 63.0f, scale_codes, minimum_codes, block, codes);
}

void QuantiseWithMinimumsBy(const float* x, const float* importance, int most, bool cut, uint8_t* block,
                            uint8_t* codes) {
  const float spread = 2 * SumOfSquares({x, 256}) / 256;
  float scales[8], minimums[8], sums[8];
  for (int g = 0; g < 8; ++g) {
    const std::span<const float> of(x + 32 * g, 32);
    float weights[32];
    Weigh(of, importance + 32 * g, spread, weights);
    sums[g] = SumOf(weights);
    scales[g] = SearchAffine(of, weights, {.most = most}, codes + 32 * g, minimums[g]);
  }
  uint8_t scale_codes[8], minimum_codes[8];
  const float d = SearchPositive(scales, sums, 63, scale_codes),
              dmin = SearchPositive(minimums, sums, 63, minimum_codes);
  if (cut) {
    for (uint8_t& code : scale_codes) code = std::min(code, uint8_t{63});
  }
  PutWithMinimums(x, most, d, dmin, scale_codes, minimum_codes, block, codes);
}

int NearestLevel(std::span<const int8_t> levels, float value) {
  const int last = static_cast<int>(levels.size()) - 1;
  if (value <= static_cast<float>(levels[0])) return 0;
  if (value >= static_cast<float>(levels[last])) return last;
  int low = 0, high = last;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (value < static_cast<float>(levels[middle]) ? high : low) = middle;
  }
  return value - static_cast<float>(levels[low]) < static_cast<float>(levels[high]) - value ? low : high;
}

float SearchLevels(const float* x, const float* weights, std::span<const int8_t> levels) {
  constexpr int kTries = 7;
  const float farthest = Farthest({x, 32}), first = static_cast<float>(levels[0]);
  if (std::fabs(farthest) < kLeastOfGroup) return 0;
  float sum_qx = 0, sum_q2 = 0;
  const auto sum = [&](float inverse) {
    sum_qx = sum_q2 = 0;
    for (int j = 0; j < 32; ++j) {
      const float level = static_cast<float>(levels[NearestLevel(levels, inverse * x[j])]), w = weights[j];
      sum_qx += w * level * x[j];
      sum_q2 += w * level * level;
    }
  };
  sum(1 / (-farthest / first));
  float d = sum_q2 > 0 ? sum_qx / sum_q2 : 0.0f, best = d * sum_qx;
  for (int t = -kTries; t <= kTries; ++t) {
    sum((static_cast<float>(t) + first) / farthest);
    if (sum_q2 > 0 && sum_qx * sum_qx > best * sum_q2) {
      d = sum_qx / sum_q2;
      best = d * sum_qx;
    }
  }
  return d;
}

}  // namespace quern::formats
