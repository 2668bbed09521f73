// TokenSampler: the next token from a row of logits.
//
//   temperature 0: the largest logit, the smallest id among equals.
//   else: logits / temperature; keep those >= the k-th largest (equals of the k-th stay); softmax; keep the fewest most
//   likely whose probabilities reach top_p (smaller ids first among equals); renormalise; invert the cumulative
//   distribution over the ids that are left, in rising order, at one uniform draw.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace quern {

struct SampleOptions {
  double temperature = 0;  // 0: the most likely token
  int top_k = 0;           // 0: all
  double top_p = 1;        // 1: all
  uint64_t seed = 0;
};

// Ok, or which option is out of range: a temperature below 0 or not finite, a negative top_k, a top_p outside (0, 1].
Status CheckSampleOptions(const SampleOptions& options);

// NaN and minus infinity are never chosen; when there is nothing else, the result is 0. Not thread-safe: the counter of
// draws moves on with each call at a temperature above 0.
class TokenSampler {
 public:
  // Precondition: CheckSampleOptions(options) is ok.
  explicit TokenSampler(const SampleOptions& options) : options_(options) {}
  // Precondition: logits are not empty.
  int32_t Next(std::span<const float> logits);

  // How many draws have been used: with the options, the sampler's whole state.
  uint64_t draws() const { return draws_; }
  void set_draws(uint64_t draws) { draws_ = draws; }

 private:
  struct Candidate {
    int32_t id;
    float logit;
    double weight;  // probability, not normalised
  };
  double Uniform();  // in [0, 1)
  void Truncate();   // candidates_ that may be drawn, with weights, ids rising

  SampleOptions options_;
  uint64_t draws_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace quern
