// TokenSampler: the next token from a row of logits.
//
//   Tokens that may not come where a grammar constrains a text (constraint.h) are no candidates. Stages (stage.h)
//   change logits, in the order of the table in sampler.cc. Then, at temperature 0: the largest logit, the smallest id
//   among equals. Else further stages leave candidates out and give the others weights, Mirostat leaves out more where
//   it is asked for, and: the weights, inverted as a cumulative distribution over the ids that are left, in rising
//   order, at one uniform draw.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "generate/constraint.h"
#include "generate/mirostat.h"
#include "generate/stage.h"

namespace quern {

// Ok, or which option is out of range.
Status CheckSamplingOptions(const SamplingOptions& options);

// NaN and minus infinity are never chosen; when there is nothing else, the result is 0. Not thread-safe: the stream of
// draws moves on with each call at a temperature above 0, and the tokens that penalties look back on with every call.
class TokenSampler {
 public:
  // Precondition: CheckSamplingOptions(options) is ok.
  // `breakers`: the ids of tokens that hold one of options.dry_breakers, rising.
  explicit TokenSampler(const SamplingOptions& options, std::unique_ptr<Constraint> constraint = nullptr,
                        std::vector<int32_t> breakers = {})
      : options_(options),
        mirostat_(options),
        constraint_(std::move(constraint)),
        breakers_(std::move(breakers)),
        uniform_(options.seed) {}
  // Precondition: logits are not empty. Errors: with a constraint, its own, and kFailedPrecondition where the logits of
  // what may come are NaN or minus infinity all.
  StatusOr<int32_t> Draw(std::span<const float> logits);
  // The same; -1 for an error, which there is none of without a constraint.
  int32_t Next(std::span<const float> logits);
  // Tokens that Next did not choose but that came before: a prompt's. What is constrained begins behind them.
  void Observe(std::span<const int32_t> ids);
  // Forgets what came before: another text begins. Draws go on.
  void Forget();
  bool constrained() const { return constraint_ != nullptr; }
  // Whether what was drawn since then is a whole text of the constraint's; true without one.
  bool complete() { return constraint_ == nullptr || constraint_->complete(); }

  // What Next would draw from, at a temperature above 0: ids rising, weights summing to 1. Empty: nothing can be drawn.
  std::vector<Candidate> Distribution(std::span<const float> logits);

  // How many draws have been used: with the options and the tokens, the sampler's whole state but for what Mirostat
  // saw of the text.
  uint64_t draws() const { return uniform_.drawn(); }
  void set_draws(uint64_t draws) { uniform_.set_drawn(draws); }

 private:
  int32_t Choose(std::span<const float> logits);
  // candidates_ that may be drawn, of those in `allowed` where it is not null, with weights (not normalised) at a
  // temperature above 0.
  void Gather(std::span<const float> logits, const TokenMask* allowed = nullptr);
  int32_t Pick();  // one of candidates_

  SamplingOptions options_;
  Mirostat mirostat_;
  std::unique_ptr<Constraint> constraint_;
  std::vector<int32_t> breakers_;
  UniformStream uniform_;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> history_;
};

}  // namespace quern
