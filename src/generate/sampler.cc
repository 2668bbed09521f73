#include "generate/sampler.h"

#include <algorithm>
#include <cmath>

namespace quern {
namespace {

// In this order. At temperature 0 the first alone count, and then the largest logit.
constexpr const Stage* kChangeLogits[] = {&kLogitBias, &kPenalties, &kDry};
constexpr const Stage* kLeaveOut[] = {&kTopNSigma, &kTopK, &kTemperature, &kTypicalP, &kTopP, &kMinP, &kXtc};

}  // namespace

Status CheckSamplingOptions(const SamplingOptions& options) {
  for (const SamplingNumber& number : SamplingNumbers()) {
    if (const double value = number.Of(options); !number.range.Holds(value))
      return absl::InvalidArgumentError(absl::StrFormat("%s %g is not %s", number.name, value, number.range.Text()));
  }
  QUERN_RETURN_IF_ERROR(CheckLogitBias(options));
  return CheckDryBreakers(options);
}

void TokenSampler::Gather(std::span<const float> logits, const TokenMask* allowed) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > -INFINITY) || (allowed != nullptr && !allowed->Has(i))) continue;  // nor NaN
    candidates_.push_back({static_cast<int32_t>(i), logits[i], 1});
  }
  if (candidates_.empty()) return;
  const StageInput in = {options_, history_, breakers_, uniform_};
  const auto apply = [&](std::span<const Stage* const> stages) {
    for (const Stage* stage : stages) {
      if (stage->active(options_)) stage->apply(in, candidates_);
    }
  };
  apply(kChangeLogits);
  if (options_.temperature == 0) return;
  apply(kLeaveOut);
  if (mirostat_.active()) mirostat_.Cut(candidates_);
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

int32_t TokenSampler::Choose(std::span<const float> logits) {
  const auto active = [&](const Stage* stage) { return stage->active(options_); };
  if (options_.temperature == 0 && std::ranges::none_of(kChangeLogits, active)) {
    size_t best = logits.size();  // without a list of candidates: a vocabulary may have many thousand
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > -INFINITY && (best == logits.size() || logits[i] > logits[best])) best = i;
    }
    return best == logits.size() ? 0 : static_cast<int32_t>(best);
  }
  Gather(logits);
  return candidates_.empty() ? 0 : Pick();
}

int32_t TokenSampler::Pick() {
  auto chosen = std::min_element(candidates_.begin(), candidates_.end(), Before);  // where rounding leaves none, too
  if (options_.temperature == 0) return chosen->id;
  double total = 0, sum = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  const double target = uniform_.Next() * total;
  const auto reaches = [&](const Candidate& c) { return target < (sum += c.weight); };
  if (const auto found = std::ranges::find_if(candidates_, reaches); found != candidates_.end()) chosen = found;
  if (mirostat_.active()) mirostat_.Observe(chosen->weight / total);
  return chosen->id;
}

StatusOr<int32_t> TokenSampler::Draw(std::span<const float> logits) {
  int32_t id = 0;
  if (constraint_ != nullptr) {
    QUERN_ASSIGN(const TokenMask* const allowed, constraint_->Allowed());
    Gather(logits, allowed);
    // A stage that would leave none leaves some whose logit is minus infinity: those were banned.
    std::erase_if(candidates_, [](const Candidate& candidate) { return !(candidate.logit > -INFINITY); });
    if (candidates_.empty())
      return absl::FailedPreconditionError("no token that the grammar lets come has a logit above minus infinity");
    id = Pick();
    QUERN_RETURN_IF_ERROR(constraint_->Accept(id));
  } else {
    id = Choose(logits);
  }
  history_.push_back(id);
  return id;
}

int32_t TokenSampler::Next(std::span<const float> logits) {
  const StatusOr<int32_t> id = Draw(logits);
  return id.ok() ? *id : -1;
}

void TokenSampler::Observe(std::span<const int32_t> ids) {
  history_.insert(history_.end(), ids.begin(), ids.end());
  if (constraint_ != nullptr) constraint_->Restart();
}

void TokenSampler::Forget() {
  history_.clear();
  mirostat_.Restart();
  if (constraint_ != nullptr) constraint_->Restart();
}

std::vector<Candidate> TokenSampler::Distribution(std::span<const float> logits) {
  const UniformStream before = uniform_;
  Gather(logits);
  uniform_ = before;
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  std::vector<Candidate> result = candidates_;
  for (Candidate& c : result) c.weight /= total;
  return result;
}

}  // namespace quern
