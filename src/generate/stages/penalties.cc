// Penalties on tokens that occur among the last `penalty_last` ones, c times:
//
//   logit > 0 ? logit / repeat : logit * repeat        (Keskar et al. 2019, "CTRL", section 4.1, as llama.cpp has it)
//   then logit - c * frequency - presence              (OpenAI's API reference, "frequency and presence penalties")
#include <cmath>
#include <unordered_map>

#include "generate/stage.h"

namespace quern {
namespace {

Status Check(const SampleOptions& options) {
  if (!(options.repeat_penalty > 0) || std::isinf(options.repeat_penalty))
    return absl::InvalidArgumentError(absl::StrFormat("a repeat penalty of %g is not above 0", options.repeat_penalty));
  for (const double penalty : {options.frequency_penalty, options.presence_penalty}) {
    if (!std::isfinite(penalty))
      return absl::InvalidArgumentError(absl::StrFormat("a penalty of %g is no finite number", penalty));
  }
  if (options.penalty_last < -1)
    return absl::InvalidArgumentError(
        absl::StrFormat("penalties on the last %d tokens make no sense; -1 is all", options.penalty_last));
  return absl::OkStatus();
}

bool Active(const SampleOptions& options) {
  return options.penalty_last != 0 &&
         (options.repeat_penalty != 1 || options.frequency_penalty != 0 || options.presence_penalty != 0);
}

void Apply(const SampleOptions& options, std::span<const int32_t> history, std::vector<Candidate>& candidates) {
  if (options.penalty_last >= 0 && history.size() > static_cast<size_t>(options.penalty_last))
    history = history.last(options.penalty_last);
  std::unordered_map<int32_t, int> counts;
  for (const int32_t id : history) ++counts[id];
  for (Candidate& candidate : candidates) {
    const auto found = counts.find(candidate.id);
    if (found == counts.end()) continue;
    double logit = candidate.logit;
    logit = logit > 0 ? logit / options.repeat_penalty : logit * options.repeat_penalty;
    candidate.logit = static_cast<float>(logit - found->second * options.frequency_penalty - options.presence_penalty);
  }
}

}  // namespace

constexpr Stage kPenalties = {"penalties", Check, Active, Apply};

}  // namespace quern
