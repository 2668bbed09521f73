// MeasurePerplexity of the public interface: logits of a session, portion by portion.

#include "quern/perplexity.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/public_error.h"
#include "compiler/text_chunks.h"

namespace quern {
namespace {

constexpr int64_t kLeastChunk = 4;     // which has a token that counts
constexpr size_t kPortion = 16 << 20;  // logits at a time

// log of the sum of what the logits are logs of; NaN where one is.
double LogSum(std::span<const float> logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  return std::log(sum) + highest;
}

// What is known of tokens so far: the mean of a number of each.
class Mean {
 public:
  void Add(double value) {
    sum_ += value;
    squares_ += value * value;
    ++count_;
  }
  int64_t count() const { return count_; }
  double value() const { return sum_ / static_cast<double>(count_); }
  // The standard error of the mean; 0 where it is not known.
  double error() const {
    const auto n = static_cast<double>(count_);
    const double variance = squares_ / n - value() * value();
    return count_ > 1 && variance > 0 ? std::sqrt(variance / (n - 1)) : 0;
  }

 private:
  double sum_ = 0, squares_ = 0;
  int64_t count_ = 0;
};

class Tally {
 public:
  // What a model says of the token `id` that came, and a base beside it, or nothing. False where a logit is NaN.
  bool Add(std::span<const float> logits, std::span<const float> base, int32_t id) {
    const double all = LogSum(logits);
    if (std::isnan(all)) return false;
    nll_.Add(all - logits[id]);
    if (base.empty()) return true;
    const double base_all = LogSum(base);
    if (std::isnan(base_all)) return false;
    base_nll_.Add(base_all - base[id]);
    double divergence = 0;
    for (size_t v = 0; v < base.size(); ++v) {
      const double log_p = base[v] - base_all, p = std::exp(log_p);
      if (p > 0) divergence += p * (log_p - (logits[v] - all));
    }
    divergence = std::max(divergence, 0.0);  // of equal chances sums may round to less
    divergence_.Add(divergence);
    largest_ = std::max(largest_, divergence);
    same_top_ += TopOf(logits) == TopOf(base) ? 1 : 0;
    return true;
  }
  PerplexityReport Report(int64_t chunks, int64_t chunk_size) const {
    const double perplexity = std::exp(nll_.value());
    PerplexityReport report = {perplexity,  perplexity * nll_.error(), nll_.value(), nll_.count(), chunks, chunk_size,
                               std::nullopt};
    const int64_t compared = divergence_.count();
    if (compared > 0) {
      report.divergence = {std::exp(base_nll_.value()), divergence_.value(), divergence_.error(), largest_,
                           static_cast<double>(same_top_) / static_cast<double>(compared)};
    }
    return report;
  }

 private:
  static int64_t TopOf(std::span<const float> logits) {
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
  }
  Mean nll_, base_nll_, divergence_;
  double largest_ = 0;
  int64_t same_top_ = 0;
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

// The base, of the same vocabulary, with the same chunks of the same tokens that `work` has.
Result<Session> OpenBase(const PerplexityOptions& options, std::string_view text, const Work& work,
                         int64_t vocabulary) {
  const auto other = [&](const std::string& what) {
    return Result<Session>::Failed(compiler::ErrorOf(ErrorCode::kInvalid, absl::StrCat(options.base, " has ", what)));
  };
  PerplexityOptions alike = options;
  alike.run.context = work.run.context;
  const StatusOr<Work> base = Prepare(options.base, text, alike);
  if (!base.ok()) return Result<Session>::Failed(compiler::ErrorOf(base.status()));
  if (base->chunks.ids != work.chunks.ids) return other("other tokens for the text than the model");
  Result<Session> session = Session::Open(options.base, base->run);
  if (session.ok() && session->vocabulary() != vocabulary)
    return other(absl::StrFormat("%d tokens, the model %d", session->vocabulary(), vocabulary));
  return session;
}

// The tokens of a chunk behind its first half, each foretold by all before it. `sessions`: of the model, and of the
// base where there is one.
Result<void> Add(std::span<const int32_t> ids, std::span<Session* const> sessions, Tally& tally) {
  const auto vocabulary = static_cast<size_t>(sessions[0]->vocabulary()),
             portion = std::max<size_t>(1, kPortion / vocabulary);
  const size_t first = ids.size() / 2, end = ids.size() - 1;
  for (Session* session : sessions) {
    session->Reset();
    if (const auto stepped = session->Step(ids.first(first)); !stepped.ok())
      return Result<void>::Failed(stepped.details());
  }
  for (size_t at = first; at < end;) {
    const size_t count = std::min(portion, end - at);
    std::vector<std::vector<float>> logits;  // by session
    for (Session* session : sessions) {
      Result<std::vector<float>> stepped = session->StepAll(ids.subspan(at, count));
      if (!stepped.ok()) return Result<void>::Failed(stepped.details());
      logits.push_back(*std::move(stepped));
    }
    for (size_t i = 0; i < count; ++i, ++at) {
      const auto row = [&](size_t s) { return std::span(logits[s]).subspan(i * vocabulary, vocabulary); };
      if (!tally.Add(row(0), sessions.size() > 1 ? row(1) : std::span<float>(), ids[at + 1])) {
        return Result<void>::Failed(
            compiler::ErrorOf(ErrorCode::kInvalid, absl::StrFormat("a logit behind token %u of a chunk is NaN", at)));
      }
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
  std::vector<Session*> sessions = {&*session};
  std::optional<Result<Session>> base;
  if (!options.base.empty()) {
    base = OpenBase(options, text, *work, session->vocabulary());
    if (!base->ok()) return Result<PerplexityReport>::Failed(base->details());
    sessions.push_back(&**base);
  }
  const compiler::TextChunks& chunks = work->chunks;
  Tally tally;
  for (int64_t c = 0; c < chunks.count; ++c) {
    if (const Result<void> added = Add(chunks.at(c), sessions, tally); !added.ok())
      return Result<PerplexityReport>::Failed(added.details());
    if (options.progress) options.progress(tally.Report(c + 1, chunks.chunk), chunks.count);
  }
  return tally.Report(chunks.count, chunks.chunk);
}

}  // namespace quern
