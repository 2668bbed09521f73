// The stages between logits and a draw. Each is a file of src/generate/stages, with its formula and source, and a row
// of the table in sampler.cc, which says in which order they come:
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
#include <utility>
#include <vector>

#include "base/status.h"

namespace quern {

struct SampleOptions {
  double temperature = 0;  // 0: the most likely token
  int top_k = 0;           // 0: all
  double top_p = 1;        // 1: all
  uint64_t seed = 0;
  double min_p = 0;              // 0: all
  double typical_p = 1;          // 1: all
  double repeat_penalty = 1;     // 1: none
  double frequency_penalty = 0;  // 0: none
  double presence_penalty = 0;   // 0: none
  int penalty_last = 64;         // tokens that the penalties look back on; -1: all
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  double mirostat_tau = 0;    // bits a token; 0: none
  double mirostat_eta = 0.1;  // how fast it follows
};

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
  const char* name;
  // Ok, or which option is out of range.
  Status (*check)(const SampleOptions& options);
  bool (*active)(const SampleOptions& options);
  // Precondition: active, candidates are not empty, in any order. `history`: the tokens so far, the last one last.
  // Stages on probabilities find the weights filled in.
  void (*apply)(const SampleOptions& options, std::span<const int32_t> history, std::vector<Candidate>& candidates);
};

extern const Stage kLogitBias;
extern const Stage kPenalties;
extern const Stage kTopK;
extern const Stage kTypicalP;
extern const Stage kTopP;
extern const Stage kMinP;

}  // namespace quern
