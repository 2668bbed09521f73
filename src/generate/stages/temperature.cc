// Temperature: weights exp((z - z_max) / T), from which probabilities are made. T is `temperature`; with dynatemp_range
// R above 0 it is higher the less sure the model is (dynamic temperature; kalomaze 2024, KoboldCpp's pull request 600,
// with the range and exponent of llama.cpp's):
//
//   T = low + (high - low) (H / log n)^dynatemp_exponent      low = max(0, temperature - R), high = temperature + R
//
// where H is the entropy of the n candidates at temperature 1. Of one T is 0 / 0, and makes no difference.
#include <algorithm>
#include <cmath>

#include "generate/stage.h"

namespace quern {
namespace {

void Weigh(std::vector<Candidate>& candidates, double temperature) {
  const float largest = std::min_element(candidates.begin(), candidates.end(), Before)->logit;
  temperature = std::max(temperature, 1e-6);
  for (Candidate& c : candidates) {
    // Infinite logits share everything between them; inf - inf would be NaN.
    c.weight = c.logit == largest ? 1 : std::exp((static_cast<double>(c.logit) - largest) / temperature);
  }
}

double Dynamic(const SamplingOptions& options, std::vector<Candidate>& candidates) {
  const double low = std::max(0.0, options.temperature - options.dynatemp_range),
               high = options.temperature + options.dynatemp_range;
  std::sort(candidates.begin(), candidates.end(), Before);  // sums are in this order
  Weigh(candidates, 1);
  const double most = std::log(static_cast<double>(candidates.size()));
  return low + (high - low) * std::pow(Entropy(candidates) / most, options.dynatemp_exponent);
}

void Apply(const StageInput& in, std::vector<Candidate>& candidates) {
  Weigh(candidates, in.options.dynatemp_range > 0 ? Dynamic(in.options, candidates) : in.options.temperature);
}

}  // namespace

double Entropy(std::span<const Candidate> candidates) {
  double total = 0, entropy = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  for (const Candidate& candidate : candidates) {
    const double p = candidate.weight / total;
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

constexpr Stage kTemperature = {[](const SamplingOptions& o) { return o.temperature > 0; }, Apply};

}  // namespace quern
