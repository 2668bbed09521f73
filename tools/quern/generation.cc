#include "generation.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/stopwatch.h"

namespace {

double PerSecond(int64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

std::string KernelsOf(const quern::Timings& timings) {
  const std::string cached = std::to_string(timings.kernels_cached),
                    compiled = std::to_string(timings.kernels_compiled);
  if (timings.kernels_cached == 0) return compiled + " kernels";
  if (timings.kernels_compiled == 0) return cached + " kernels from the cache";
  return compiled + " kernels and " + cached + " from the cache";
}

}  // namespace

quern::Result<quern::Sampler> SamplerOf(const quern::SamplingOptions& options, const quern::Session& session) {
  if (!options.needs_tokenizer()) return quern::Sampler::Make(options);
  quern::Result<quern::Tokenizer> tokenizer = session.tokenizer();
  if (!tokenizer.ok()) return quern::Result<quern::Sampler>::Failed(tokenizer.details());
  return quern::Sampler::Make(options, &*tokenizer);
}

quern::Result<std::vector<float>> Generation::Step(std::span<const int32_t> ids, bool every_row, double& seconds) {
  const double compiled = session_.timings().compile;
  const quern::Stopwatch watch;
  quern::Result<std::vector<float>> logits = every_row ? session_.StepAll(ids) : session_.Step(ids);
  seconds += watch.Seconds() - (session_.timings().compile - compiled);
  return logits;
}

void Generation::Resume(std::vector<int32_t> tokens) {
  tokens_ = std::move(tokens);
  resumed_ = true;
}

int64_t Generation::Reuse(std::span<const int32_t> ids) {
  const auto [mismatch, unused] = std::mismatch(tokens_.begin(), tokens_.end(), ids.begin(), ids.end());
  int64_t common = std::min<int64_t>(mismatch - tokens_.begin(), static_cast<int64_t>(ids.size()) - 1);
  if (!session_.Rewind(common).ok()) {
    session_.Reset();
    common = 0;
  }
  if (resumed_) sampler_.Observe(ids.first(static_cast<size_t>(common)));
  resumed_ = false;
  return common;
}

quern::Result<Ending> Generation::Run(std::span<const int32_t> prompt, const Limits& limits,
                                      const std::function<bool(int32_t)>& show,
                                      const std::function<quern::Result<void>(const std::vector<float>&)>& logits) {
  using Failed = quern::Result<Ending>;
  const size_t vocabulary = static_cast<size_t>(session_.vocabulary());
  sampler_.Observe(prompt);
  tokens_.resize(std::min(tokens_.size(), static_cast<size_t>(session_.position())));
  quern::Result<std::vector<float>> rows = Step(prompt, limits.every_row, counts_.prompt_seconds);
  // Of a part that was run before it was stopped too.
  const int64_t run = session_.position() - static_cast<int64_t>(tokens_.size());
  tokens_.insert(tokens_.end(), prompt.begin(), prompt.begin() + run);
  counts_.prompt += run;
  if (!rows.ok()) return Failed::Failed(rows.details());
  if (logits) {
    if (const quern::Result<void> ok = logits(*rows); !ok.ok()) return Failed::Failed(ok.details());
  }
  if (limits.tokens == 0) return Ending::kTokens;
  size_t row = rows->size() / vocabulary - 1;  // that the next token is drawn from
  std::vector<int32_t> guesses;                // that the rows behind it are for
  size_t right = 0;
  for (int drawn = 1;; ++drawn) {
    quern::Result<int32_t> token = sampler_.Draw(std::span(*rows).subspan(row * vocabulary, vocabulary));
    if (!token.ok()) return Failed::Failed(token.details());
    const int32_t next = *token;
    const bool guessed = right < guesses.size() && guesses[right] == next;
    // What was guessed wrong, or behind the end, has not been.
    const auto end_here = [&](Ending ending) -> quern::Result<Ending> {
      const quern::Result<void> back = session_.Rewind(static_cast<int64_t>(tokens_.size()));
      return back.ok() ? quern::Result<Ending>(ending) : Failed::Failed(back.details());
    };
    if (!limits.ignore_end && session_.IsEnd(next)) return end_here(Ending::kEndToken);
    if (!show(next)) return end_here(Ending::kStopped);
    if (drawn == limits.tokens) return end_here(Ending::kTokens);
    if (guessed) {
      tokens_.push_back(next);
      ++counts_.decoded;
      ++row;
      ++right;
    } else {
      if (right < guesses.size()) {
        if (quern::Result<Ending> back = end_here(Ending::kTokens); !back.ok()) return back;
      }
      if (session_.position() >= session_.context()) {
        if (!limits.shift) return Ending::kContext;
        if (const quern::Result<void> shifted = Shift(); !shifted.ok()) return Failed::Failed(shifted.details());
      }
      const int64_t room = session_.context() - session_.position() - 1;
      guesses = Guess(next, std::min<int64_t>({limits.speculate, room, limits.tokens - drawn - 1}));
      right = row = 0;
      std::vector<int32_t> ids = {next};
      ids.insert(ids.end(), guesses.begin(), guesses.end());
      rows = Step(ids, !guesses.empty(), counts_.decode_seconds);
      if (!rows.ok()) return Failed::Failed(rows.details());
      tokens_.push_back(next);
      ++counts_.decoded;
    }
    if (logits) {
      const auto first = rows->begin() + static_cast<int64_t>(row * vocabulary);
      const quern::Result<void> ok = logits({first, first + static_cast<int64_t>(vocabulary)});
      if (!ok.ok()) return Failed::Failed(ok.details());
    }
  }
}

std::vector<int32_t> Generation::Guess(int32_t next, int64_t most) const {
  constexpr size_t kAlike = 3;  // tokens that have to be those of the last time
  std::vector<int32_t> guesses;
  if (most <= 0 || !session_.rewinds() || tokens_.size() < kAlike) return guesses;
  const auto end = tokens_.end();
  std::vector<int32_t> ending(end - (kAlike - 1), end);
  ending.push_back(next);
  const auto last = std::find_end(tokens_.begin(), end, ending.begin(), ending.end());
  if (last == end) return guesses;
  const auto first = last + kAlike;
  guesses.assign(first, first + std::min<int64_t>(most, end - first));
  return guesses;
}

// The keys of tokens hold their positions: those that stay are computed anew at their new ones.
quern::Result<void> Generation::Shift() {
  const int64_t first = 1, all = static_cast<int64_t>(tokens_.size()), gone = (all - first) / 2;
  if (gone < 1) return {};
  tokens_.erase(tokens_.begin() + first, tokens_.begin() + first + gone);
  session_.Reset();
  const quern::Result<std::vector<float>> rows = Step(tokens_, false, counts_.prompt_seconds);
  if (!rows.ok()) return quern::Result<void>::Failed(rows.details());
  counts_.prompt += all - gone;
  return {};
}

std::string Generation::Summary() const {
  const quern::Timings& timings = session_.timings();
  char line[512];
  std::snprintf(
      line, sizeof(line),
      "load %.1f ms, compile %.1f ms (%s), prefill %lld tokens at %.1f/s, decode %lld tokens at %.1f/s, %d thread%s",
      timings.load * 1e3, timings.compile * 1e3, KernelsOf(timings).c_str(), static_cast<long long>(counts_.prompt),
      PerSecond(counts_.prompt, counts_.prompt_seconds), static_cast<long long>(counts_.decoded),
      PerSecond(counts_.decoded, counts_.decode_seconds), session_.threads(), session_.threads() == 1 ? "" : "s");
  return line;
}

std::function<void(int64_t, int64_t)> PromptProgress() {
  if (isatty(STDERR_FILENO) == 0) return {};
  // The first call comes after the first part, and is where the clock of the rest starts.
  struct Progress {
    quern::Stopwatch watch;
    int64_t done = 0;
  };
  const auto state = std::make_shared<Progress>();
  return [state](int64_t done, int64_t all) {
    if (done <= state->done || state->done == 0) *state = {quern::Stopwatch(), done};
    constexpr int kWidth = 30;
    const int filled = static_cast<int>(done * kWidth / all);
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    std::fprintf(stderr, "\r\x1b[Kprompt [%s] %lld of %lld tokens", bar.c_str(), static_cast<long long>(done),
                 static_cast<long long>(all));
    const double rate = PerSecond(done - state->done, state->watch.Seconds());
    if (done > state->done) std::fprintf(stderr, ", %.1f/s", rate);
    if (done == all) {
      std::fprintf(stderr, "\r\x1b[K");
      state->done = 0;
    }
    std::fflush(stderr);
  };
}
