// A prompt through a session, tokens out of it, and what that took.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "quern/quern.h"

// A sampler of these options; with a grammar, of the session's tokens. Errors: those of Sampler::Make, and of the
// session's tokenizer.
quern::Result<quern::Sampler> SamplerOf(const quern::SamplingOptions& options, const quern::Session& session);

// What is said of an answer that a grammar constrains and that ended early.
inline constexpr const char* kNotWhole =
    "the answer ended before it was a whole text of its grammar; --tokens N allows more";

// Why an answer ended.
enum class Ending { kEndToken, kTokens, kContext, kStopped };

class Generation {
 public:
  // Both outlive it.
  Generation(quern::Session& session, quern::Sampler& sampler) : session_(session), sampler_(sampler) {}

  struct Limits {
    int tokens = 0;           // to draw at most
    bool ignore_end = false;  // end tokens are tokens like any other
    bool every_row = false;   // logits of each prompt token, not of the last alone
    // Tokens that are guessed at once, 7 at most: where the text repeats itself, what came last time is run along and
    // kept as far as it is drawn. What is drawn stays the same.
    int speculate = 0;
    // Where the context is full the older half of the text goes, but for the first token, and the rest is run again.
    bool shift = false;
  };
  // Runs `prompt` and draws from what follows. `logits` sees what each run gives, [rows, vocabulary]; `show` each token
  // that is drawn, and says whether to go on. Errors: those of Session::Step and of
  // Sampler::Draw; what `logits` returns.
  quern::Result<Ending> Run(std::span<const int32_t> prompt, const Limits& limits,
                            const std::function<bool(int32_t)>& show,
                            const std::function<quern::Result<void>(const std::vector<float>&)>& logits = {});

  // What a session that was loaded has seen.
  void Resume(std::vector<int32_t> tokens);
  // Takes the session back to what it has seen of `ids`, but for the last of them, whose logits an answer begins with;
  // how many tokens that are. Run wants those behind them.
  int64_t Reuse(std::span<const int32_t> ids);

  // What the session has seen: its position is their number.
  const std::vector<int32_t>& tokens() const { return tokens_; }

  // Of all runs so far: tokens of prompts that were run, and tokens that were drawn and run; in how many seconds.
  struct Counts {
    int64_t prompt = 0, decoded = 0;
    double prompt_seconds = 0, decode_seconds = 0;
  };
  const Counts& counts() const { return counts_; }

  // "load .., compile .., prefill .., decode .., N threads": over all runs so far.
  std::string Summary() const;

 private:
  // A step, its time without compiling in `seconds`.
  quern::Result<std::vector<float>> Step(std::span<const int32_t> ids, bool every_row, double& seconds);

  // What may come after tokens_ and `next`, at most `most`.
  std::vector<int32_t> Guess(int32_t next, int64_t most) const;
  // Makes room in a full context.
  quern::Result<void> Shift();

  quern::Session& session_;
  quern::Sampler& sampler_;
  std::vector<int32_t> tokens_;
  bool resumed_ = false;  // the sampler has not seen them yet
  Counts counts_;
};

// A line on standard error, written over by the next, for Options::progress: how much of a prompt is done and how fast.
// Null where standard error is no terminal.
std::function<void(int64_t, int64_t)> PromptProgress();
