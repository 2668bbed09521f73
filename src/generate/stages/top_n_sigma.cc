// Top-n-sigma (Tang et al. 2024, "Top-n-sigma: Not All Logits Are You Need", arXiv:2411.07641): those whose logit is at
// least the largest less n times the standard deviation of all finite logits. It leaves the same at any temperature.
#include <algorithm>
#include <cmath>

#include "generate/stage.h"

namespace quern {
namespace {

void Apply(const StageInput& in, std::vector<Candidate>& candidates) {
  // Sums are in the order of ids: candidates still come with rising ones.
  double sum = 0, squares = 0, count = 0;
  for (const Candidate& candidate : candidates) {
    if (!std::isfinite(candidate.logit)) continue;
    sum += candidate.logit;
    ++count;
  }
  if (count == 0) return;
  const double mean = sum / count;
  for (const Candidate& candidate : candidates) {
    if (std::isfinite(candidate.logit)) squares += (candidate.logit - mean) * (candidate.logit - mean);
  }
  const double largest = std::min_element(candidates.begin(), candidates.end(), Before)->logit;
  const double least = largest - in.options.top_n_sigma * std::sqrt(squares / count);
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.logit < least; });
}

}  // namespace

constexpr Stage kTopNSigma = {[](const SamplingOptions& o) { return o.top_n_sigma > 0; }, Apply};

}  // namespace quern
