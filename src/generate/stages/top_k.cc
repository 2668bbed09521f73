// Top-k (Fan, Lewis, Dauphin 2018): those whose logit is at least the k-th largest; equals of the k-th stay.
#include <algorithm>

#include "generate/stage.h"

namespace quern {
namespace {

void Apply(const StageInput& in, std::vector<Candidate>& candidates) {
  const auto k = static_cast<size_t>(in.options.top_k);
  if (k >= candidates.size()) return;
  const auto kth = candidates.begin() + static_cast<ptrdiff_t>(k - 1);
  std::nth_element(candidates.begin(), kth, candidates.end(), Before);
  const float least = kth->logit;
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.logit < least; });
}

}  // namespace

constexpr Stage kTopK = {[](const SamplingOptions& o) { return o.top_k > 0; }, Apply};

}  // namespace quern
