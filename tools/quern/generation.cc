#include "generation.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

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
  if (options.grammar.empty()) return quern::Sampler::Make(options);
  quern::Result<quern::Tokenizer> tokenizer = session.tokenizer();
  if (!tokenizer.ok()) return quern::Result<quern::Sampler>::Failed(tokenizer.details());
  return quern::Sampler::Make(options, &*tokenizer);
}

quern::Result<std::vector<float>> Generation::Step(std::span<const int32_t> ids, bool every_row, double& seconds) {
  const double compiled = session_.timings().compile;
  const Clock::time_point start = Clock::now();
  quern::Result<std::vector<float>> logits = every_row ? session_.StepAll(ids) : session_.Step(ids);
  seconds += Since(start) - (session_.timings().compile - compiled);
  return logits;
}

quern::Result<Ending> Generation::Run(std::span<const int32_t> prompt, const Limits& limits,
                                      const std::function<bool(int32_t)>& show,
                                      const std::function<quern::Result<void>(const std::vector<float>&)>& logits) {
  using Failed = quern::Result<Ending>;
  const size_t vocabulary = static_cast<size_t>(session_.vocabulary());
  const int64_t before = session_.position();
  sampler_.Observe(prompt);
  quern::Result<std::vector<float>> row = Step(prompt, limits.every_row, prompt_seconds_);
  prompt_tokens_ += session_.position() - before;
  for (int drawn = 0;; ++drawn) {
    if (!row.ok()) return Failed::Failed(row.details());
    if (logits) {
      if (const quern::Result<void> ok = logits(*row); !ok.ok()) return Failed::Failed(ok.details());
    }
    if (drawn == limits.tokens) return Ending::kTokens;
    quern::Result<int32_t> token = sampler_.Draw(std::span(*row).last(vocabulary));
    if (!token.ok()) return Failed::Failed(token.details());
    const int32_t next = *token;
    if (!limits.ignore_end && session_.IsEnd(next)) return Ending::kEndToken;
    if (!show(next)) return Ending::kStopped;
    if (drawn + 1 == limits.tokens) return Ending::kTokens;
    if (session_.position() >= session_.context()) return Ending::kContext;
    row = Step(std::span(&next, 1), false, decode_seconds_);
    decoded_ += row.ok();
  }
}

std::string Generation::Summary() const {
  const quern::Timings& timings = session_.timings();
  char line[512];
  std::snprintf(
      line, sizeof(line),
      "load %.1f ms, compile %.1f ms (%s), prefill %lld tokens at %.1f/s, decode %lld tokens at %.1f/s, %d thread%s",
      timings.load * 1e3, timings.compile * 1e3, KernelsOf(timings).c_str(), static_cast<long long>(prompt_tokens_),
      PerSecond(prompt_tokens_, prompt_seconds_), static_cast<long long>(decoded_),
      PerSecond(decoded_, decode_seconds_), session_.threads(), session_.threads() == 1 ? "" : "s");
  return line;
}

std::function<void(int64_t, int64_t)> PromptProgress() {
  if (isatty(STDERR_FILENO) == 0) return {};
  // The first call comes after the first part, and is where the clock of the rest starts.
  struct Progress {
    Clock::time_point start;
    int64_t done = 0;
  };
  const auto state = std::make_shared<Progress>();
  return [state](int64_t done, int64_t all) {
    if (done <= state->done || state->done == 0) *state = {Clock::now(), done};
    constexpr int kWidth = 30;
    const int filled = static_cast<int>(done * kWidth / all);
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    std::fprintf(stderr, "\r\x1b[Kprompt [%s] %lld of %lld tokens", bar.c_str(), static_cast<long long>(done),
                 static_cast<long long>(all));
    const double rate = PerSecond(done - state->done, Since(state->start));
    if (done > state->done) std::fprintf(stderr, ", %.1f/s", rate);
    if (done == all) {
      std::fprintf(stderr, "\r\x1b[K");
      state->done = 0;
    }
    std::fflush(stderr);
  };
}
