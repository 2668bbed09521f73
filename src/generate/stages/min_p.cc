// Min-p (Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs"): those whose
// probability is at least min_p times that of the most likely.
#include <algorithm>

#include "generate/stage.h"

namespace quern {
namespace {

Status Check(const SampleOptions& options) {
  if (!(options.min_p >= 0 && options.min_p <= 1))
    return absl::InvalidArgumentError(absl::StrFormat("min_p %g is not in [0, 1]", options.min_p));
  return absl::OkStatus();
}

void Apply(const SampleOptions& options, std::span<const int32_t>, std::vector<Candidate>& candidates) {
  double largest = 0;
  for (const Candidate& candidate : candidates) largest = std::max(largest, candidate.weight);
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.weight < options.min_p * largest; });
}

}  // namespace

constexpr Stage kMinP = {"min_p", Check, [](const SampleOptions& o) { return o.min_p > 0; }, Apply};

}  // namespace quern
