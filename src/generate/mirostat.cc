#include "generate/mirostat.h"

#include <algorithm>
#include <cmath>

namespace quern {

Mirostat::Mirostat(const SamplingOptions& options)
    : tau_(options.mirostat_tau), eta_(options.mirostat_eta), most_(2 * tau_) {}

void Mirostat::Cut(std::vector<Candidate>& candidates) const {
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  const double least = total * std::exp2(-most_);
  const Candidate best = *std::min_element(candidates.begin(), candidates.end(), Before);
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.weight < least; });
  if (candidates.empty()) candidates = {best};
}

void Mirostat::Observe(double p) { most_ -= eta_ * (-std::log2(p) - tau_); }

}  // namespace quern
