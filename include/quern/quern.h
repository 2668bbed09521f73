// The public interface for language models: open a model file and get the next token. quern/graph.h is the one for graphs of
// your own; quern/result.h has the errors of both.
//
//   quern::Result<quern::Session> session = quern::Session::Open("model.gguf");
//   if (!session.ok()) return Complain(session.error());
//   std::vector<int32_t> ids = session->Tokenize("Once upon a time");
//   std::vector<float> logits = *session->Step(ids);   // of the token after the last one
//
// Only the standard library appears here. Nothing throws; what can fail returns a Result. Objects are movable and not
// thread-safe; different objects are independent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/result.h"

namespace quern {

struct Options {
  std::string cpu = "native";   // instruction-set level: native, x86-64-v2, x86-64-v3, x86-64-v4
  int threads = 0;              // 0: as many as the process may use
  int compile_threads = 0;      // likewise
  bool exact = false;           // keep activations f32 beside quantised weights
  bool specialise = false;      // inline the tiles' own code into kernels instead of calling it
  int64_t context = 0;          // positions to keep; 0: the model's own length, at most 4096
  // Called with a line of text when a variant of the graph is compiled at first use. Null: silent.
  std::function<void(std::string_view)> log = {};
};

struct SamplingOptions {
  double temperature = 0;       // 0: the most likely token
  int top_k = 0;                // 0: all
  double top_p = 1;
  uint64_t seed = 0;
};

// Wall time in seconds since Open, by what it went to.
struct Timings {
  double load = 0;              // mapping the file, reading its metadata, building the graph
  double compile = 0;           // everything from blocks to machine code
  double run = 0;
};

// A language model with its cache: a position in a text.
class Session {
 public:
  // Maps the GGUF file and compiles what a single token needs; other step lengths compile at first use.
  static Result<Session> Open(const std::string& path, const Options& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  int64_t vocabulary() const;
  int64_t context() const;      // positions the cache holds
  int64_t position() const;     // tokens in the cache
  int threads() const;          // that a step uses
  const Timings& timings() const;

  // Token ids of `text`, with the model's begin-of-text token in front when `begin` is set and the model wants it.
  std::vector<int32_t> Tokenize(std::string_view text, bool begin = true) const;
  // The bytes of one token; empty for control tokens and ids out of range.
  std::string Piece(int32_t id) const;
  // Whether generation ends after this token.
  bool IsEnd(int32_t id) const;

  // Runs `ids` at the current position; long prompts run in chunks. Logits [vocabulary] after the last id. Errors: no ids,
  // an id out of range, more positions than the context holds.
  Result<std::vector<float>> Step(std::span<const int32_t> ids);
  // The same, with the logits after every id: [ids, vocabulary].
  Result<std::vector<float>> StepAll(std::span<const int32_t> ids);
  // Back to an empty cache.
  void Reset();

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Whether the options make sense: a finite temperature of 0 or more, top_k 0 or more, top_p above 0 and at most 1.
Result<void> CheckSampling(const SamplingOptions& options);

// Draws tokens from logits. The same seed and the same logits give the same tokens.
class Sampler {
 public:
  // Options that CheckSampling refuses draw the most likely token.
  explicit Sampler(const SamplingOptions& options);
  Sampler(Sampler&&) noexcept;
  ~Sampler();
  int32_t Next(std::span<const float> logits);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Text of one stage of a model's way to machine code: "hir", "mir", "lir", "kir", "llvm" or "asm". `kernel` limits kir, llvm
// and asm to kernels whose label contains it. `after` gives the graph after that pass (the plan after "plan"); `stop_after`
// also leaves out what comes later; passes in `skip` are left out. `tokens` is the step length it is for.
struct DumpOptions {
  std::string stage = "mir";
  std::string kernel = {};
  std::string after = {};
  std::string stop_after = {};
  std::vector<std::string> skip = {};
  int64_t tokens = 1;
};
Result<std::string> Dump(const std::string& path, const Options& options, const DumpOptions& dump);

// Metadata and tensors of a model file, for people. Text from the file is escaped: it cannot steer a terminal.
Result<std::string> Inspect(const std::string& path);

// Every block and op with its operands and attributes, as docs/ops.md has them.
std::string OpReference();

}  // namespace quern
