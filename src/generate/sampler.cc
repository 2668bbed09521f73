#include "generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "generate/philox.h"

namespace quern {

Status CheckSampleOptions(const SampleOptions& options) {
  if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
    return absl::InvalidArgumentError(absl::StrFormat("a temperature of %g is not 0 or more", options.temperature));
  }
  if (options.top_k < 0) return absl::InvalidArgumentError(absl::StrFormat("top_k %d is negative", options.top_k));
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return absl::InvalidArgumentError(absl::StrFormat("top_p %g is not in (0, 1]", options.top_p));
  }
  return absl::OkStatus();
}

double TokenSampler::Uniform() {
  const PhiloxCounter counter = {static_cast<uint32_t>(draws_), static_cast<uint32_t>(draws_ >> 32), 0, 0};
  const PhiloxKey key = {static_cast<uint32_t>(options_.seed), static_cast<uint32_t>(options_.seed >> 32)};
  ++draws_;
  const PhiloxCounter bits = Philox4x32(counter, key);
  // 53 bits: every double of that grid below 1 is equally likely.
  return static_cast<double>((uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1p-53;
}

void TokenSampler::Truncate() {
  // A total order, so that every standard library agrees: most likely first, smaller ids first among equals.
  auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  const size_t k = static_cast<size_t>(std::max(options_.top_k, 0));
  if (k > 0 && k < candidates_.size()) {
    const auto kth = candidates_.begin() + static_cast<ptrdiff_t>(k - 1);
    std::nth_element(candidates_.begin(), kth, candidates_.end(), before);
    const float least = kth->logit;
    std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < least; });
  }
  const float largest = std::min_element(candidates_.begin(), candidates_.end(), before)->logit;
  const double temperature = std::max(options_.temperature, 1e-6);
  for (Candidate& c : candidates_) {
    // Infinite logits share everything between them; inf - inf would be NaN.
    c.weight = c.logit == largest ? 1 : std::exp((static_cast<double>(c.logit) - largest) / temperature);
  }
  if (options_.top_p < 1) {
    // Sorted here only: a vocabulary may have many thousand ids.
    std::sort(candidates_.begin(), candidates_.end(), before);
    double total = 0, reached = 0;
    for (const Candidate& c : candidates_) total += c.weight;
    size_t keep = 0;
    while (keep < candidates_.size() && reached < options_.top_p * total) reached += candidates_[keep++].weight;
    candidates_.resize(std::max<size_t>(keep, 1));
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

int32_t TokenSampler::Next(std::span<const float> logits) {
  int32_t best = -1;
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > -INFINITY)) continue;  // NaN too
    const auto id = static_cast<int32_t>(i);
    if (best < 0 || logits[i] > logits[best]) best = id;
    if (options_.temperature > 0) candidates_.push_back({id, logits[i], 0});
  }
  if (candidates_.empty()) return std::max(best, 0);
  Truncate();
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  const double target = Uniform() * total;
  double sum = 0;
  for (const Candidate& c : candidates_) {
    sum += c.weight;
    if (target < sum) return c.id;
  }
  return best;  // rounding left the sum just under the target
}

}  // namespace quern
