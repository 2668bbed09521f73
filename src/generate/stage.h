// The stages between logits and a draw. Each is a file of src/generate/stages, with its formula and source, and a row
// of the table in sampler.cc, which says in which order they come; the numbers that it goes by are rows of
// sampling_numbers.cc:
//
//   logit_bias, penalties            change logits
//   top_k                            on logits
//   typical_p, top_p, min_p          on probabilities at the temperature
//
// What mirostat.h leaves out of the rest depends on what was drawn before, so it is no stage.
//
// Stages that leave candidates out always leave one. What they compute does not depend on the order in which candidates
// stand, nor on the machine beyond its exp and log.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "quern/sampling.h"

namespace quern {

struct Candidate {
  int32_t id;
  float logit;
  double weight;  // probability, not normalised
};

// Most likely first, smaller ids first among equals: a total order, so that every standard library agrees.
inline bool Before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

struct Stage {
  bool (*active)(const SamplingOptions& options);
  // Precondition: active, candidates are not empty, in any order. `history`: the tokens so far, the last one last.
  // Stages on probabilities find the weights filled in.
  void (*apply)(const SamplingOptions& options, std::span<const int32_t> history, std::vector<Candidate>& candidates);
};

extern const Stage kLogitBias;
extern const Stage kPenalties;
extern const Stage kTopK;
extern const Stage kTypicalP;
extern const Stage kTopP;
extern const Stage kMinP;

// Ok, or which bias makes no sense: what of the options is no number, and has no range in SamplingNumbers().
Status CheckLogitBias(const SamplingOptions& options);

}  // namespace quern
