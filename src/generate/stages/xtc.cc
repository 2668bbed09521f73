// Exclude top choices (p-e-w 2024, text-generation-webui's pull request 6335, "XTC"): with the probability
// xtc_probability, of the tokens that are at least xtc_threshold likely all but the least likely are left out; where
// there are fewer than two, nothing is. One number of the stream is drawn each time, whatever comes of it.
#include <algorithm>

#include "generate/stage.h"

namespace quern {
namespace {

void Apply(const StageInput& in, std::vector<Candidate>& candidates) {
  if (in.uniform.Next() >= in.options.xtc_probability) return;
  std::sort(candidates.begin(), candidates.end(), Before);
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  const double least = in.options.xtc_threshold * total;
  const auto likely = [&](const Candidate& candidate) { return candidate.weight >= least; };
  const auto end = std::partition_point(candidates.begin(), candidates.end(), likely);
  if (end - candidates.begin() >= 2) candidates.erase(candidates.begin(), end - 1);
}

}  // namespace

constexpr Stage kXtc = {[](const SamplingOptions& o) { return o.xtc_probability > 0; }, Apply};

}  // namespace quern
