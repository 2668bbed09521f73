// The stages between logits and a draw. Each is a file of src/generate/stages, with its formula and source, and a row
// of the table in sampler.cc, which says in which order they come; the numbers that it goes by are rows of
// sampling_numbers.cc:
//
//   logit_bias, penalties, dry       change logits
//   top_n_sigma, top_k               leave out by logits
//   temperature                      makes weights of them
//   typical_p, top_p, min_p, xtc     leave out by weights
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
#include "generate/uniform.h"
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

// What a stage goes by beside the candidates.
struct StageInput {
  const SamplingOptions& options;
  std::span<const int32_t> history;   // the tokens so far, the last one last
  std::span<const int32_t> breakers;  // those that hold one of options.dry_breakers, rising
  UniformStream& uniform;
};

struct Stage {
  bool (*active)(const SamplingOptions& options);
  // Precondition: active, candidates are not empty, in any order where no comment says otherwise. Stages behind
  // temperature find the weights filled in.
  void (*apply)(const StageInput& in, std::vector<Candidate>& candidates);
};

extern const Stage kLogitBias;
extern const Stage kPenalties;
extern const Stage kDry;
extern const Stage kTopNSigma;
extern const Stage kTopK;
extern const Stage kTemperature;
extern const Stage kTypicalP;
extern const Stage kTopP;
extern const Stage kMinP;
extern const Stage kXtc;

// Ok, or what makes no sense of the options that are no numbers, and have no range in SamplingNumbers().
Status CheckLogitBias(const SamplingOptions& options);
Status CheckDryBreakers(const SamplingOptions& options);

// Of the probabilities that the weights stand for, in nats, summed in the order of the candidates.
double Entropy(std::span<const Candidate> candidates);

}  // namespace quern
