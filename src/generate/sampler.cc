#include "generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "generate/philox.h"

namespace quern {
namespace {

constexpr const Stage* kOnLogits[] = {&kLogitBias, &kPenalties, &kTopK};
constexpr const Stage* kOnProbabilities[] = {&kTypicalP, &kTopP, &kMinP};

}  // namespace

Status CheckSamplingOptions(const SamplingOptions& options) {
  for (const SamplingNumber& number : SamplingNumbers()) {
    if (const double value = number.Of(options); !number.range.Holds(value))
      return absl::InvalidArgumentError(absl::StrFormat("%s %g is not %s", number.name, value, number.range.Text()));
  }
  return CheckLogitBias(options);
}

double TokenSampler::Uniform() {
  const PhiloxCounter counter = {static_cast<uint32_t>(draws_), static_cast<uint32_t>(draws_ >> 32), 0, 0};
  const PhiloxKey key = {static_cast<uint32_t>(options_.seed), static_cast<uint32_t>(options_.seed >> 32)};
  ++draws_;
  const PhiloxCounter bits = Philox4x32(counter, key);
  // 53 bits: every double of that grid below 1 is equally likely.
  return static_cast<double>((uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1p-53;
}

void TokenSampler::Gather(std::span<const float> logits, const TokenMask* allowed) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > -INFINITY) || (allowed != nullptr && !allowed->Has(i))) continue;  // nor NaN
    candidates_.push_back({static_cast<int32_t>(i), logits[i], 1});
  }
  if (candidates_.empty()) return;
  for (const Stage* stage : kOnLogits) {
    if (stage->active(options_)) stage->apply(options_, history_, candidates_);
  }
  if (options_.temperature == 0) return;
  const float largest = std::min_element(candidates_.begin(), candidates_.end(), Before)->logit;
  const double temperature = std::max(options_.temperature, 1e-6);
  for (Candidate& c : candidates_) {
    // Infinite logits share everything between them; inf - inf would be NaN.
    c.weight = c.logit == largest ? 1 : std::exp((static_cast<double>(c.logit) - largest) / temperature);
  }
  for (const Stage* stage : kOnProbabilities) {
    if (stage->active(options_)) stage->apply(options_, history_, candidates_);
  }
  if (mirostat_.active()) mirostat_.Cut(candidates_);
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

int32_t TokenSampler::Choose(std::span<const float> logits) {
  if (options_.temperature == 0 && !kLogitBias.active(options_) && !kPenalties.active(options_)) {
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
  const double target = Uniform() * total;
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
  Gather(logits);
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  std::vector<Candidate> result = candidates_;
  for (Candidate& c : result) c.weight /= total;
  return result;
}

}  // namespace quern
