// MeasurePerplexity of the public interface: logits of a session, portion by portion.

#include "quern/perplexity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/public_error.h"
#include "compiler/text_chunks.h"

namespace quern {
namespace {

constexpr int64_t kLeastChunk = 4;     // which has a token that counts
constexpr size_t kPortion = 16 << 20;  // logits at a time

// -log of the chance of `id`; NaN where a logit is.
double NllOf(std::span<const float> logits, int32_t id) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  return std::log(sum) - (logits[id] - highest);
}

// What is known of tokens so far.
class Tally {
 public:
  void Add(double nll) {
    sum_ += nll;
    squares_ += nll * nll;
    ++count_;
  }
  PerplexityReport Report(int64_t chunks, int64_t chunk_size) const {
    const auto n = static_cast<double>(count_);
    const double nll = sum_ / n, perplexity = std::exp(nll), variance = squares_ / n - nll * nll;
    const double error = count_ > 1 && variance > 0 ? perplexity * std::sqrt(variance / (n - 1)) : 0;
    return {perplexity, error, nll, count_, chunks, chunk_size};
  }

 private:
  double sum_ = 0, squares_ = 0;
  int64_t count_ = 0;
};

// What is run, and on what.
struct Work {
  Options run;
  compiler::TextChunks chunks;
};
StatusOr<Work> Prepare(const std::string& path, std::string_view text, const PerplexityOptions& options) {
  Work work{options.run, {}};
  QUERN_ASSIGN(const compiler::OpenedModel opened, compiler::OpenForChunks(path, work.run));
  if (work.run.context < kLeastChunk) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a chunk of %d tokens (--context) is too short: at least %d", work.run.context, kLeastChunk));
  }
  QUERN_ASSIGN(work.chunks, compiler::CutText(opened, text, options.chunks, options.parse_special));
  return work;
}

// The tokens of a chunk behind its first half, each foretold by all before it.
Result<void> Add(std::span<const int32_t> ids, Session& session, Tally& tally) {
  const auto vocabulary = static_cast<size_t>(session.vocabulary()),
             portion = std::max<size_t>(1, kPortion / vocabulary);
  const size_t first = ids.size() / 2, end = ids.size() - 1;
  session.Reset();
  if (const auto stepped = session.Step(ids.first(first)); !stepped.ok())
    return Result<void>::Failed(stepped.details());
  for (size_t at = first; at < end;) {
    const size_t count = std::min(portion, end - at);
    const Result<std::vector<float>> logits = session.StepAll(ids.subspan(at, count));
    if (!logits.ok()) return Result<void>::Failed(logits.details());
    for (size_t i = 0; i < count; ++i, ++at) {
      const double nll = NllOf(std::span(*logits).subspan(i * vocabulary, vocabulary), ids[at + 1]);
      if (std::isnan(nll)) {
        return Result<void>::Failed(
            compiler::ErrorOf(ErrorCode::kInvalid, absl::StrFormat("a logit behind token %u of a chunk is NaN", at)));
      }
      tally.Add(nll);
    }
  }
  return {};
}

}  // namespace

Result<PerplexityReport> MeasurePerplexity(const std::string& model, std::string_view text,
                                           const PerplexityOptions& options) {
  const StatusOr<Work> work = Prepare(model, text, options);
  if (!work.ok()) return Result<PerplexityReport>::Failed(compiler::ErrorOf(work.status()));
  Result<Session> session = Session::Open(model, work->run);
  if (!session.ok()) return Result<PerplexityReport>::Failed(session.details());
  const compiler::TextChunks& chunks = work->chunks;
  Tally tally;
  for (int64_t c = 0; c < chunks.count; ++c) {
    if (const Result<void> added = Add(chunks.at(c), *session, tally); !added.ok())
      return Result<PerplexityReport>::Failed(added.details());
    if (options.progress) options.progress(tally.Report(c + 1, chunks.chunk), chunks.count);
  }
  return tally.Report(chunks.count, chunks.chunk);
}

}  // namespace quern
