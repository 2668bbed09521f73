// Scheduler: many answers at once from one model. A thread of its own runs steps: every answer under way gives its last
// token, prompts fill up the rows that are left; new requests join and ended ones leave between steps. What a finished
// answer leaves in the cache is kept for prompts that begin alike, until its room is wanted.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "quern/sequences.h"

namespace quern::serve {

struct SchedulerOptions {
  int parallel = 4;       // answers under way
  int queue = 64;         // requests that wait for one; more are refused
  int prompt_rows = 128;  // tokens of prompts in a step: how long answers under way wait for them
};

// A token as text, bytes that may be part of a character, and the logarithm of its share among all tokens, as the model
// has it: before temperature and what else chooses.
struct Likely {
  std::string token;
  double logprob = 0;
};
// What was drawn, and what was likeliest in its place, the best first.
struct Drawn : Likely {
  std::vector<Likely> best;
};

struct Request {
  std::vector<int32_t> prompt;
  SamplingOptions sampling = {};
  int64_t tokens = 256;  // at most
  std::vector<std::string> stops = {};
  bool special = false;  // control tokens are part of the text
  int likeliest = -1;    // of each token, how many others are said with it; below 0: nothing is said of tokens
};

// One answer, shared by who reads it and the scheduler. Thread-safe.
class Answer {
 public:
  enum class End { kNone, kStop, kTokens, kCancelled, kError };
  struct Piece {
    std::string text;  // since the last piece; whole characters
    End end = End::kNone;
    std::string error;         // with kError
    std::vector<Drawn> drawn;  // since the last piece, where the request asks; a stop string's are among them
  };
  // What there is, after waiting for something, or for `wait`.
  Piece Next(std::chrono::milliseconds wait);
  // Nobody reads it any more: it ends at the next step.
  void Cancel();
  bool cancelled() const;

  // Tokens of the prompt, of these from the cache, and of the answer so far.
  struct Counts {
    int64_t prompt = 0, cached = 0, answer = 0;
  };
  Counts counts() const;

 private:
  friend class Scheduler;
  void Add(const std::string& text, int64_t tokens);
  void AddDrawn(Drawn drawn);
  void Finish(End end, std::string error = "");

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_, error_;
  std::vector<Drawn> drawn_;
  End end_ = End::kNone;
  bool cancelled_ = false;
  Counts counts_;
};

// Thread-safe.
class Scheduler {
 public:
  static Result<std::unique_ptr<Scheduler>> Open(const std::string& path, const Options& options,
                                                 const SchedulerOptions& scheduling);
  // Ends what is under way, as errors, and the thread.
  ~Scheduler();

  // Errors: kInvalid (no prompt, or one that leaves no room for an answer in the context), those of Sampler::Make,
  // kBusy (the queue is full, or the scheduler ends).
  Result<std::shared_ptr<Answer>> Submit(Request request);
  // No new requests from here on; those there are go on.
  void Close();
  // Waits until none are under way; false where that takes longer.
  bool Drain(std::chrono::milliseconds wait);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  int64_t context() const { return context_; }

  struct Metrics {
    int64_t requests = 0, refused = 0, finished = 0, cancelled = 0, failed = 0;
    int64_t prompt_tokens = 0, cached_tokens = 0, answer_tokens = 0, steps = 0;
    int64_t active = 0, waiting = 0;
    double step_seconds = 0;
  };
  Metrics metrics() const;

 private:
  struct Active;
  struct Kept {
    int sequence;
    std::vector<int32_t> tokens;
    int64_t used;  // when, in steps
  };

  Scheduler(Sequences model, const SchedulerOptions& scheduling);
  void Loop();
  void Admit();
  bool Start(Active& active);
  bool MakeRoom(int64_t tokens);
  void DropOldest();
  void Step();
  void Take(Active& active, const std::vector<float>& logits);
  Drawn Shares(int32_t id, const std::vector<float>& logits, int likeliest) const;
  void End(Active& active, Answer::End end, std::string error = "");

  Sequences model_;
  std::optional<Tokenizer> tokenizer_;
  const SchedulerOptions scheduling_;
  int64_t context_ = 0, most_ = 0;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable wake_, idle_;
  std::deque<std::unique_ptr<Active>> waiting_;
  Metrics metrics_;
  bool closed_ = false, stopping_ = false;

  // The thread's own.
  std::vector<std::unique_ptr<Active>> active_;
  std::vector<Kept> kept_;
  std::thread thread_;
};

}  // namespace quern::serve
