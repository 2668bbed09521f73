// Min-p (Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs"): those whose
// probability is at least min_p times that of the most likely.
#include <algorithm>

#include "generate/stage.h"

namespace quern {
namespace {

void Apply(const StageInput& in, std::vector<Candidate>& candidates) {
  double largest = 0;
  for (const Candidate& candidate : candidates) largest = std::max(largest, candidate.weight);
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.weight < in.options.min_p * largest; });
}

}  // namespace

constexpr Stage kMinP = {[](const SamplingOptions& o) { return o.min_p > 0; }, Apply};

}  // namespace quern
