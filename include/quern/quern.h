// The public interface for language models: open a model file and get the next token. quern/graph.h is the one for
// graphs of your own; quern/result.h has the errors of both.
//
//   quern::Result<quern::Session> session = quern::Session::Open("model.gguf");
//   if (!session.ok()) return Complain(session.error());
//   std::vector<int32_t> ids = *session->Tokenize("Once upon a time");
//   std::vector<float> logits = *session->Step(ids);   // of the token after the last one
//
// Only the standard library appears here. Nothing throws but what the standard library does without memory; what can
// fail returns a Result. Objects own what they hold, are movable (one that was moved from may only be assigned to or
// destroyed) and not thread-safe; different objects are independent, each with threads of its own. While kernels run,
// denormals count as zero.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quern/result.h"
#include "quern/sampling.h"
#include "quern/tokenizer.h"

namespace quern {

// Asks runs to stop, from another thread or from a signal handler (Cancel does nothing that one may not do). A run that
// is asked ends between two launches of kernels, or two trips of a loop, with ErrorCode::kCancelled. Not movable: it
// stays where it is for as long as anything looks at it.
class CancelToken {
 public:
  CancelToken() = default;
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;
  void Cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  // Runs that start from here on are not asked any more.
  void Reset() noexcept { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }
  const std::atomic<bool>& flag() const noexcept { return cancelled_; }

 private:
  std::atomic<bool> cancelled_{false};
};

// A LoRA adapter for a language model: a GGUF file of pairs of small matrices (docs/models.md). What it adds to a
// product is scale * alpha / rank times B (A x), where alpha is the file's.
struct LoraAdapter {
  std::string path;
  double scale = 1;
};

struct Options {
  // Instruction-set level: native (the greatest this machine has), x86-64-v2, x86-64-v3, x86-64-v4; or, by Quern's own
  // names, sse4, avx2, avx512, avx512vnni, amx. On a device, and where text for one is made: a level of it, such as
  // sm_80; native: the greatest it has, or the least where there is none to ask.
  std::string cpu = "native";
  // Where a session's kernels run (docs/gpu.md): "cpu"; "cuda", an NVIDIA device, whose driver QUERN_CUDA_DRIVER may
  // name; "metal", Apple's; or "emulated", which interprets what a device would run, slowly and with every access
  // checked. Checks, profiles and the cache of kernels are the cpu's alone.
  std::string device = "cpu";
  int threads = 0;          // that run kernels, the caller's among them, at most 256; 0: as many as the process may use
  int compile_threads = 0;  // likewise, for compiling
  bool exact = false;       // keep activations f32 beside quantised weights, and of all their bits beside halves
  // Logits of a language model that are the same to the bit however its tokens are cut into steps, on any number of
  // threads, as long as each token comes in a step of the same sort: a prompt's, of more than 8 tokens, or one of 1 to
  // 8 as generation takes them. Without it they are the same within the contracts. A prompt pays a little for its last
  // row, whose logits are computed as those of many rows are.
  bool invariant = false;
  // Ops with a kernel of their own that are known in other ops too (docs/targets.md): "native", their kernel where
  // there is one for the node; "common", the other ops; "only-native", an error where the node has no kernel; by op as
  // well, "native,Attention=common". "" for what the environment's QUERN_KERNELS says (likewise), else native.
  std::string kernels = {};
  bool specialise = false;  // inline the tiles' own code into kernels instead of calling it
  // Compiled kernels are kept on disk and taken from there at the next start: a folder, "off", or "" for what the
  // environment's QUERN_CACHE says (likewise), else the user's own cache folder. A folder that others may write to is
  // not used (docs/cache.md).
  std::string cache = {};
  bool cache_verify = false;  // compile what the cache has as well, and fail where the bytes differ
  // Checks every kernel while it runs (docs/checking.md), slowly: "ref" against the interpreter in double, "nan" for
  // NaNs and infinities that appear. The first op that fails ends the run with ErrorCode::kCheck, and a reproduction is
  // written to the folder; none where it is empty. "": no checks.
  std::string check = {};
  std::string check_folder = ".";
  // For profilers and debuggers (docs/debugging.md). A line in /tmp/perf-PID.map for each kernel; also by
  // QUERN_PERF_MAP=1.
  bool perf_map = false;
  // A folder for the printed kernels, whose lines generated code then knows, and a jitdump; code is announced to GDB,
  // and the cache is left out. Also by QUERN_DEBUG_KERNELS. Empty: none of that.
  std::string debug_kernels = {};
  // What asks runs to stop, or null; it outlives what is made with these options.
  const CancelToken* cancel = nullptr;
  int64_t context = 0;  // positions to keep, at most 2^24; 0: the model's own length, at most 4096
  // Of language models and encoders: adapters, all of which add to what their weights give. A tensor of one that has no
  // place in the model is an error.
  std::vector<LoraAdapter> lora = {};
  // Called while a session's step takes a long prompt, after each part of it, with the tokens that are done and those
  // of the whole step; on the thread of the step. Not called where a step is one part. Null: silent.
  std::function<void(int64_t done, int64_t all)> progress = {};
  // Called with a line of text when a variant of the graph is compiled, on the thread of the call that needs it. Null:
  // silent.
  std::function<void(std::string_view)> log = {};
};

// A grammar for SamplingOptions::grammar whose texts are JSON that a JSON schema takes; {} is any object. Errors, with
// the place in the schema: kInvalid, no JSON, or a schema that nothing fulfils; kUnsupported, a keyword that restricts
// and is none of those in docs/text.md; kResource, a schema that is too large.
Result<std::string> GrammarOfJsonSchema(std::string_view schema);

// Wall time in seconds since Open, by what it went to.
struct Timings {
  double load = 0;     // mapping the file, reading its metadata, building the graph
  double compile = 0;  // everything from blocks to machine code, and work on weights alone
  double run = 0;      // steps, without what they compiled

  // Parts of `compile`.
  double passes = 0;  // blocks lowered, and the passes over the whole graph
  double plans = 0;   // variants fused, lowered to kernels and planned
  double cached = 0;  // kernels taken from the cache: found, checked, linked
  double llvm = 0;    // kernels compiled: LLVM and what leads to it, summed over the compile threads
  int kernels_cached = 0, kernels_compiled = 0;
};

class Profiler;

// A language model with its cache: a position in a text.
class Session {
 public:
  // Maps the model, a GGUF file or a folder of safetensors, and compiles what a single token needs; other step lengths
  // compile at first use. The file stays mapped for the life of the session and must stay as it is. Errors: kResource
  // (a file that cannot be read, memory); kInvalid (a damaged file, with the place; an option; a level this machine
  // lacks); kUnsupported (another architecture or format). The tokenizer is made when text is first asked for.
  static Result<Session> Open(const std::string& path, const Options& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  int64_t vocabulary() const;  // logits a position has
  int64_t context() const;     // positions the cache holds
  int64_t position() const;    // tokens in the cache
  // Positions that the model was trained for, by its file; 0 where that does not say. Past them answers get worse.
  int64_t trained_context() const;
  int threads() const;  // that a step uses
  // 32 hexadecimal digits that tell models apart, by their metadata, the names, extents and formats of their tensors
  // with a sample of bytes of each, and by adapters and their scales. Keys and values of one are nothing to another.
  std::string fingerprint() const;
  const Timings& timings() const;
  // What Options::check has looked at so far, in a sentence; empty without.
  std::string CheckSummary() const;

  // The file's tokenizer, made at the first call and shared from then on. Errors: those of Tokenizer::Open; kInvalid
  // where it has more tokens than the model has logits.
  Result<Tokenizer> tokenizer() const;
  // What it makes of `text`; the same errors.
  Result<std::vector<int32_t>> Tokenize(std::string_view text, const TokenizeOptions& options = {}) const;
  // The bytes of one token; empty for control tokens, for ids out of range, and without a tokenizer.
  std::string Piece(int32_t id) const;
  // Whether generation ends after this token; never without a tokenizer.
  bool IsEnd(int32_t id) const;

  // Runs `ids` at the current position; long prompts run in chunks of 256. Logits [vocabulary] after the last id, not
  // normalised. Errors: kInvalid (no ids, an id out of range, more positions than the context holds), after which
  // nothing has changed; kResource when a chunk's variant cannot be compiled, and kCancelled: position() tells which
  // ids are in the cache, and the session goes on from there.
  Result<std::vector<float>> Step(std::span<const int32_t> ids);
  // The same, with the logits after every id: [ids, vocabulary], dense, row by row.
  Result<std::vector<float>> StepAll(std::span<const int32_t> ids);
  // Back to an empty cache.
  void Reset();
  // Back to where the cache held `position` tokens, so that a text that begins alike goes on from there. Error:
  // kInvalid, more than it holds now; kUnsupported, of states that go on with every token (Mamba), but back to 0.
  Result<void> Rewind(int64_t position);
  // Whether that goes anywhere but to 0.
  bool rewinds() const;

  // The keys, values and states after the tokens so far as bytes, and a cache that holds those instead of its own; a
  // sequence of the same model takes them too (quern/sequences.h). Load checks that they are of a model with these
  // layers and extents, not which weights made them. Errors, after which nothing has changed: kInvalid (other bytes,
  // more tokens than the context); kUnsupported, on a device.
  Result<std::vector<uint8_t>> Save() const;
  Result<void> Load(std::span<const uint8_t> bytes);

 private:
  friend class Profiler;  // quern/profile.h
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Whether the options make sense: numbers in the ranges of SamplingNumbers(), a bias that is no NaN and not above all
// numbers on an id of 0 or more, no empty text in dry_breakers, a grammar without mistakes. Else kInvalid, with line
// and column in a grammar; kResource for one beyond the limits.
Result<void> CheckSampling(const SamplingOptions& options);

// Draws tokens from logits. The same seed and the same logits in the same order give the same tokens, on any machine.
class Sampler {
 public:
  // Errors: those of CheckSampling; kInvalid, options that need the tokenizer whose tokens are drawn without it, or a
  // grammar with one that has no end token.
  static Result<Sampler> Make(const SamplingOptions& options, const Tokenizer* tokenizer = nullptr);
  // Options that CheckSampling refuses draw the most likely token; with those that need a tokenizer none is drawn:
  // they take Make.
  explicit Sampler(const SamplingOptions& options);
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();
  // An index of `logits` [vocabulary]. NaN and minus infinity are never drawn; 0 when there is nothing else, or
  // nothing. With a grammar never a token that it does not allow, but an error, and generation has to end: kInvalid,
  // that nothing can be drawn, or that the text has ended; kResource, that a limit of docs/text.md is reached.
  Result<int32_t> Draw(std::span<const float> logits);
  // The same; -1, which is no token, for an error.
  int32_t Next(std::span<const float> logits);
  // Tokens that came before and that were not drawn, a prompt's: penalties look back on them. The text of a grammar
  // begins behind them.
  void Observe(std::span<const int32_t> ids);
  // Another text begins: what came before is forgotten. Draws go on where they are.
  void Forget();
  // Whether what was drawn since then is a whole text of the grammar; true without one.
  bool complete() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Text of one stage of a model's way to machine code: "hir", "mir", "lir", "kir", "llvm" or "asm"; or to a device:
// "ptx" or "metal" (and, with options.cpu a level of a device, what comes before that). `kernel` limits kir and what
// follows to kernels whose label contains it. `after` gives the graph after that pass (the plan after "plan");
// `stop_after` also leaves out what comes later; both have a form of their own, so `stage` stays as it is. Passes in
// `skip` are left out. `tokens` is the step length it is for, 1 to 256.
struct DumpOptions {
  std::string stage = "mir";
  std::string kernel = {};
  std::string after = {};
  std::string stop_after = {};
  std::vector<std::string> skip = {};
  int64_t tokens = 1;
  // Called with the graph after each pass, the plan after "plan"; may be null.
  std::function<void(std::string_view pass, std::string_view text)> each = {};
};
// What DumpOptions::stage, and what `after`, `stop_after` and `skip` may be, in the order of the way.
std::vector<std::string> DumpStages();
std::vector<std::string> DumpPasses();
// This machine need not have options.cpu. Errors: those of opening the model; kInvalid for a stage, pass or length
// there is not, or when no kernel has such a label.
Result<std::string> Dump(const std::string& path, const Options& options, const DumpOptions& dump);

// Metadata and tensors of a model file of any architecture, for people. Text from the file is escaped: it cannot steer
// a terminal. Errors: kResource, or kInvalid with the place in the file.
Result<std::string> Inspect(const std::string& path);

// What was built: "quern 0.1.0 (b79915cd1), LLVM 19.1.7, level avx512vnni here", with the commit where it was built
// from a checkout ("+": and changes), and the best level of kernels that this machine runs.
std::string BuildText();

// Every block and op with its operands and attributes, as docs/ops.md has them.
// `compile`: which ops the targets take is found by compiling an example of each, which takes seconds; else it is what
// that page says.
std::string OpReference(bool compile = false);

}  // namespace quern
