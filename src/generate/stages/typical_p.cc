// Locally typical sampling (Meister et al. 2023, "Locally Typical Sampling", equation 10): the fewest tokens whose
// surprise -log p is nearest to the entropy H = -sum p log p and whose probabilities reach typical_p together. Of equal
// distances the more likely comes first, then the smaller id.
#include <algorithm>
#include <cmath>

#include "generate/stage.h"

namespace quern {
namespace {

void Apply(const StageInput& in, std::vector<Candidate>& candidates) {
  std::sort(candidates.begin(), candidates.end(), Before);  // sums are in this order
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  const double entropy = Entropy(candidates);
  std::vector<std::pair<double, size_t>> order;  // distance, place
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double p = candidates[i].weight / total;
    order.emplace_back(p > 0 ? std::abs(-std::log(p) - entropy) : INFINITY, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Candidate> kept;
  double reached = 0;
  for (const auto& [distance, place] : order) {
    if (!kept.empty() && reached >= in.options.typical_p * total) break;
    kept.push_back(candidates[place]);
    reached += candidates[place].weight;
  }
  candidates = std::move(kept);
}

}  // namespace

constexpr Stage kTypicalP = {[](const SamplingOptions& o) { return o.typical_p < 1; }, Apply};

}  // namespace quern
