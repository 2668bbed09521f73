// Many texts in one language model at once: each is a sequence with a length of its own, and one step takes tokens of
// as many as there are, prompts beside single tokens. Weights are read once for all of them.
//
//   quern::Result<quern::Sequences> model = quern::Sequences::Open("model.gguf", {}, {.most = 8});
//   const int a = *model->Add(), b = *model->Add();
//   const quern::SequenceStep steps[] = {{a, first}, {b, second}};          // ids of two prompts
//   std::vector<std::vector<float>> logits = *model->Step(steps);           // after the last token of each
//
// Keys and values lie in blocks of 32 tokens, which sequences that begin alike share (Fork). With Options::invariant a
// sequence's logits are the same to the bit whatever others are in its steps, as long as each token comes in a portion
// of the same sort, of more than 8 tokens or of 1 to 8; those of a Session are the same within the contracts.
//
// Where an architecture carries a state from token to token (mamba, mamba2, qwen3next) a sequence has the state after
// its last token, and none of those before: rewinds() is false. A step is then a run for the single tokens of all its
// sequences and one or more for each that has several. Encoders and devices are kUnsupported.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quern/quern.h"
#include "quern/result.h"
#include "quern/tokenizer.h"

namespace quern {

struct SequenceOptions {
  int most = 8;        // sequences there may be at a time, 1..1024
  int64_t tokens = 0;  // that there is room for, of all together; 0: most times the context
};

// What one sequence adds to a step.
struct SequenceStep {
  int sequence = 0;
  std::span<const int32_t> ids;  // its next tokens, 1 or more
  bool logits = true;            // those after the last of them are wanted
};

// Movable, not thread-safe; owns threads of its own.
class Sequences {
 public:
  // Maps and compiles as Session::Open, with its errors; kInvalid also for numbers outside their ranges.
  static Result<Sequences> Open(const std::string& path, const Options& options = {},
                                const SequenceOptions& sequences = {});
  Sequences(Sequences&&) noexcept;
  Sequences& operator=(Sequences&&) noexcept;
  ~Sequences();

  int64_t vocabulary() const;           // logits of a row
  int64_t context() const;              // tokens that one sequence may have
  int64_t room() const;                 // tokens that new blocks have room for
  int64_t steps() const;                // runs of the model so far; a long step is several
  Result<Tokenizer> tokenizer() const;  // as Session::tokenizer

  // A new sequence, empty. Its number may be one that was used before. Error: kResource, there are as many as may be.
  Result<int> Add();
  // Whether a sequence can go back to any of its tokens; else to none, or it stays where it is.
  bool rewinds() const;
  // A new sequence that begins as the first `tokens` of another; keys, values and states are shared until one of the
  // two writes into them. Errors: kUnknownName, kOutOfRange (it has fewer), kResource; kUnsupported, of a model that
  // does not rewind, but for all tokens or 0.
  Result<int> Fork(int sequence, int64_t tokens);
  // Takes all tokens from the `tokens`-th on away. Errors: kUnknownName, kOutOfRange; kUnsupported as for Fork.
  Result<void> Truncate(int sequence, int64_t tokens);
  Result<void> Remove(int sequence);
  // Tokens of a sequence; -1: there is none of that number.
  int64_t length(int sequence) const;

  // The logits [vocabulary] of each of `steps` that wants them, in their order; empty for the others. Sequences occur
  // once each. Errors, after which nothing has changed: kInvalid (no ids, an id out of range, a sequence twice),
  // kUnknownName, kOutOfRange (more tokens than the context), kResource (no room). After kResource of a compilation and
  // kCancelled, length() tells how far each sequence has come.
  Result<std::vector<std::vector<float>>> Step(std::span<const SequenceStep> steps);

  // The tokens' keys, values and states as bytes, and a new sequence of them; a Session's too (quern/quern.h). Load
  // checks that they are of a model with these layers and extents, not which weights made them. Errors: kUnknownName;
  // kInvalid (other bytes), kResource.
  Result<std::vector<uint8_t>> Save(int sequence) const;
  Result<int> Load(std::span<const uint8_t> bytes);

 private:
  struct State;
  explicit Sequences(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quern
