#include "generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "generate/philox.h"

namespace quern {

double TokenSampler::Uniform() {
  const PhiloxCounter counter = {static_cast<uint32_t>(draws_), static_cast<uint32_t>(draws_ >> 32), 0, 0};
  const PhiloxKey key = {static_cast<uint32_t>(options_.seed), static_cast<uint32_t>(options_.seed >> 32)};
  ++draws_;
  const PhiloxCounter bits = Philox4x32(counter, key);
  // 53 bits: every double of that grid below 1 is equally likely.
  return static_cast<double>((uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1p-53;
}

int32_t TokenSampler::Next(std::span<const float> logits) {
  if (options_.temperature <= 0) {
    int32_t best = 0;
    float largest = -INFINITY;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > largest) largest = logits[i], best = static_cast<int32_t>(i);
    }
    return best;
  }
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!std::isnan(logits[i])) candidates_.emplace_back(logits[i], static_cast<int32_t>(i));
  }
  if (candidates_.empty()) return 0;
  std::sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  size_t kept = candidates_.size();
  if (options_.top_k > 0 && static_cast<size_t>(options_.top_k) < kept) {
    // Values equal to the k-th stay, so that the set does not depend on the order of ids.
    const float least = candidates_[options_.top_k - 1].first;
    kept = options_.top_k;
    while (kept < candidates_.size() && candidates_[kept].first == least) ++kept;
  }
  const double temperature = std::max(options_.temperature, 1e-6), top = candidates_[0].first;
  std::vector<double> weight(kept);
  double total = 0;
  for (size_t i = 0; i < kept; ++i) total += weight[i] = std::exp((candidates_[i].first - top) / temperature);
  if (options_.top_p < 1) {
    double sum = 0;
    size_t enough = 0;
    while (enough < kept && sum < options_.top_p * total) sum += weight[enough++];
    kept = std::max<size_t>(1, enough);
    total = 0;
    for (size_t i = 0; i < kept; ++i) total += weight[i];
  }
  double left = Uniform() * total;
  for (size_t i = 0; i + 1 < kept; ++i) {
    if (left < weight[i]) return candidates_[i].second;
    left -= weight[i];
  }
  return candidates_[kept - 1].second;
}

}  // namespace quern
