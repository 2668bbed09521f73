// Top-p (Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration"): the fewest most likely whose
// probabilities reach p together, smaller ids first among equals.
#include <algorithm>

#include "generate/stage.h"

namespace quern {
namespace {

void Apply(const StageInput& in, std::vector<Candidate>& candidates) {
  std::sort(candidates.begin(), candidates.end(), Before);
  double total = 0, reached = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  size_t keep = 0;
  while (keep < candidates.size() && reached < in.options.top_p * total) reached += candidates[keep++].weight;
  candidates.resize(std::max<size_t>(keep, 1));
}

}  // namespace

constexpr Stage kTopP = {[](const SamplingOptions& o) { return o.top_p < 1; }, Apply};

}  // namespace quern
