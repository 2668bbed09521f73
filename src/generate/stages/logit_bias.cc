// Logit bias: a number is added to the logits of some tokens; minus infinity bans one, and so does a bias on a token
// that is then NaN. Ids that are no candidates are passed over; an id that is named twice gets both.
#include <algorithm>
#include <cmath>

#include "generate/stage.h"

namespace quern {
namespace {

void Apply(const StageInput& in, std::vector<Candidate>& candidates) {
  // Candidates come with rising ids: this is the first stage.
  for (const auto& [id, bias] : in.options.logit_bias) {
    const auto found =
        std::lower_bound(candidates.begin(), candidates.end(), id,
                         [](const Candidate& candidate, int32_t wanted) { return candidate.id < wanted; });
    if (found != candidates.end() && found->id == id) found->logit += bias;
  }
  const auto banned = [](const Candidate& candidate) { return !(candidate.logit > -INFINITY); };
  if (!std::all_of(candidates.begin(), candidates.end(), banned)) std::erase_if(candidates, banned);
}

}  // namespace

Status CheckLogitBias(const SamplingOptions& options) {
  for (const auto& [id, bias] : options.logit_bias) {
    if (std::isnan(bias) || bias == INFINITY)
      return absl::InvalidArgumentError(absl::StrFormat("the bias %g of token %d is no finite number", bias, id));
    if (id < 0) return absl::InvalidArgumentError(absl::StrFormat("a bias is on token %d, which there is not", id));
  }
  return absl::OkStatus();
}

constexpr Stage kLogitBias = {[](const SamplingOptions& o) { return !o.logit_bias.empty(); }, Apply};

}  // namespace quern
