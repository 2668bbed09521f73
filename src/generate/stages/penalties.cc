// Penalties on tokens that occur among the last `penalty_last` ones, c times:
//
//   logit > 0 ? logit / repeat : logit * repeat        (Keskar et al. 2019, "CTRL", section 4.1, as llama.cpp has it)
//   then logit - c * frequency - presence              (OpenAI's API reference, "frequency and presence penalties")
#include <unordered_map>

#include "generate/stage.h"

namespace quern {
namespace {

bool Active(const SamplingOptions& options) {
  return options.penalty_last != 0 &&
         (options.repeat_penalty != 1 || options.frequency_penalty != 0 || options.presence_penalty != 0);
}

void Apply(const StageInput& in, std::vector<Candidate>& candidates) {
  const SamplingOptions& options = in.options;
  std::span<const int32_t> history = in.history;
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

constexpr Stage kPenalties = {Active, Apply};

}  // namespace quern
