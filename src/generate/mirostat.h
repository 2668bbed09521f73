// Mirostat (Basu, Ramachandran, Keskar and Varshney 2021, "Mirostat: A Neural Text Decoding Algorithm that Directly
// Controls Perplexity", arXiv:2007.14966), in its second version, which estimates nothing of the distribution: the text
// keeps a given surprise on average, in bits a token.
//
//   most = 2 tau at the begin of a text
//   drawn from:  tokens whose surprise -log2 p is at most `most`, or the most likely one
//   then:        most -= eta (-log2 p of the token, among those, - tau)
#pragma once

#include <vector>

#include "generate/stage.h"

namespace quern {

class Mirostat {
 public:
  explicit Mirostat(const SamplingOptions& options);
  bool active() const { return tau_ > 0; }
  // Leaves out the candidates, which have weights and are not empty, whose surprise is too large.
  void Cut(std::vector<Candidate>& candidates) const;
  // One of the probability `p` among those left was drawn.
  void Observe(double p);
  // A text begins.
  void Restart() { most_ = 2 * tau_; }

 private:
  double tau_, eta_, most_;
};

}  // namespace quern
