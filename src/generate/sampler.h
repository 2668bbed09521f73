// TokenSampler: the next token from a row of logits.
//
//   The stages (stage.h) change logits and leave candidates out, in the order of the table in sampler.cc. Then, at
//   temperature 0: the largest logit, the smallest id among equals. Else: the softmax of logits / temperature, inverted
//   as a cumulative distribution over the ids that are left, in rising order, at one uniform draw.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/stage.h"

namespace quern {

// Ok, or which option is out of range: a temperature below 0 or not finite, or what a stage refuses.
Status CheckSampleOptions(const SampleOptions& options);

// NaN and minus infinity are never chosen; when there is nothing else, the result is 0. Not thread-safe: the counter of
// draws moves on with each call at a temperature above 0, and the tokens that penalties look back on with every call.
class TokenSampler {
 public:
  // Precondition: CheckSampleOptions(options) is ok.
  explicit TokenSampler(const SampleOptions& options) : options_(options) {}
  // Precondition: logits are not empty.
  int32_t Next(std::span<const float> logits);
  // Tokens that Next did not choose but that came before: a prompt's.
  void Observe(std::span<const int32_t> ids) { history_.insert(history_.end(), ids.begin(), ids.end()); }
  // Forgets what came before: another text begins. Draws go on.
  void Forget() { history_.clear(); }

  // What Next would draw from, at a temperature above 0: ids rising, weights summing to 1. Empty: nothing can be drawn.
  std::vector<Candidate> Distribution(std::span<const float> logits);

  // How many draws have been used: with the options and the tokens, the sampler's whole state.
  uint64_t draws() const { return draws_; }
  void set_draws(uint64_t draws) { draws_ = draws; }

 private:
  double Uniform();  // in [0, 1)
  int32_t Choose(std::span<const float> logits);
  // candidates_ that may be drawn, with weights (not normalised) at a temperature above 0.
  void Gather(std::span<const float> logits);

  SampleOptions options_;
  uint64_t draws_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> history_;
};

}  // namespace quern
