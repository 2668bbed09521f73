#include "serve/scheduler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/stopwatch.h"
#include "compiler/public_error.h"

namespace quern::serve {

namespace {

constexpr int64_t kBlock = 32;  // tokens that room is counted by (quern/sequences.h)

int64_t CommonLength(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  const size_t most = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + static_cast<int64_t>(most), b.begin()).first - a.begin();
}

}  // namespace

struct Scheduler::Active {
  Active(Request given, Sampler draws, Tokenizer tokenizer)
      : request(std::move(given)),
        answer(std::make_shared<Answer>()),
        sampler(std::move(draws)),
        stream(std::move(tokenizer), request.stops, request.special),
        tokens(request.prompt) {}
  // Room for all that it may come to.
  int64_t Room() const {
    return (static_cast<int64_t>(request.prompt.size()) + request.tokens + kBlock - 1) / kBlock * kBlock;
  }

  Request request;
  std::shared_ptr<Answer> answer;
  Sampler sampler;
  TextStream stream;
  int sequence = -1;
  std::vector<int32_t> tokens;  // of the prompt and the answer
  int64_t done = 0;             // of `tokens`, in the cache
  int64_t drawn = 0;
};

Answer::Piece Answer::Next(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, wait, [&] { return !text_.empty() || end_ != End::kNone; });
  return {std::exchange(text_, {}), end_, error_, std::exchange(drawn_, {})};
}

void Answer::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
}

bool Answer::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

Answer::Counts Answer::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void Answer::Add(const std::string& text, int64_t tokens) {
  const std::lock_guard lock(mutex_);
  text_ += text;
  counts_.answer += tokens;
  if (!text.empty()) changed_.notify_all();
}

void Answer::AddDrawn(Drawn drawn) {
  const std::lock_guard lock(mutex_);
  drawn_.push_back(std::move(drawn));
}

void Answer::Finish(End end, std::string error) {
  const std::lock_guard lock(mutex_);
  end_ = end;
  error_ = std::move(error);
  changed_.notify_all();
}

Result<std::unique_ptr<Scheduler>> Scheduler::Open(const std::string& path, const Options& options,
                                                   const SchedulerOptions& scheduling) {
  using Made = Result<std::unique_ptr<Scheduler>>;
  // As many sequences again keep what ended answers left.
  Result<Sequences> model = Sequences::Open(path, options, {.most = 2 * scheduling.parallel});
  if (!model.ok()) return Made::Failed(model.details());
  Result<Tokenizer> tokenizer = model->tokenizer();
  if (!tokenizer.ok()) return Made::Failed(tokenizer.details());
  std::unique_ptr<Scheduler> made(new Scheduler(std::move(*model), scheduling));
  made->tokenizer_ = *tokenizer;
  made->thread_ = std::thread([scheduler = made.get()] { scheduler->Loop(); });
  return made;
}

Scheduler::Scheduler(Sequences model, const SchedulerOptions& scheduling)
    : model_(std::move(model)), scheduling_(scheduling), context_(model_.context()), most_(2 * scheduling.parallel) {}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Result<std::shared_ptr<Answer>> Scheduler::Submit(Request request) {
  using Made = Result<std::shared_ptr<Answer>>;
  const int64_t prompt = static_cast<int64_t>(request.prompt.size());
  if (prompt == 0) return Made::Failed(compiler::ErrorOf(ErrorCode::kInvalid, "the prompt is empty"));
  if (prompt >= context_) {
    return Made::Failed(compiler::ErrorOf(
        ErrorCode::kInvalid, "the prompt of " + std::to_string(prompt) +
                                 " tokens leaves no room for an answer in the context of " + std::to_string(context_)));
  }
  request.tokens = std::clamp<int64_t>(request.tokens, 1, context_ - prompt);
  Result<Sampler> sampler = Sampler::Make(request.sampling, &*tokenizer_);
  if (!sampler.ok()) return Made::Failed(sampler.details());
  auto active = std::make_unique<Active>(std::move(request), std::move(*sampler), *tokenizer_);
  active->answer->counts_.prompt = prompt;
  active->sampler.Observe(active->tokens);
  std::shared_ptr<Answer> answer = active->answer;
  const std::lock_guard lock(mutex_);
  if (closed_ || static_cast<int>(waiting_.size()) >= scheduling_.queue) {
    ++metrics_.refused;
    return Made::Failed(
        compiler::ErrorOf(ErrorCode::kBusy, closed_ ? "the server is stopping" : "too many requests wait"));
  }
  ++metrics_.requests;
  metrics_.waiting = static_cast<int64_t>(waiting_.size()) + 1;
  waiting_.push_back(std::move(active));
  wake_.notify_all();
  return answer;
}

void Scheduler::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

bool Scheduler::Drain(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, wait, [&] { return metrics_.active == 0 && waiting_.empty(); });
}

Scheduler::Metrics Scheduler::metrics() const {
  const std::lock_guard lock(mutex_);
  return metrics_;
}

void Scheduler::Loop() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      metrics_.active = static_cast<int64_t>(active_.size());
      if (active_.empty() && waiting_.empty()) idle_.notify_all();
      wake_.wait(lock, [&] { return stopping_ || !waiting_.empty() || !active_.empty(); });
      if (stopping_) break;
    }
    Admit();
    Step();
  }
  for (const auto& active : active_) End(*active, Answer::End::kError, "the server is stopping");
  active_.clear();
  const std::lock_guard lock(mutex_);
  for (const auto& active : waiting_) active->answer->Finish(Answer::End::kError, "the server is stopping");
  waiting_.clear();
}

// Starts what waits, in the order in which it came, as far as there is room.
void Scheduler::Admit() {
  while (static_cast<int>(active_.size()) < scheduling_.parallel) {
    std::unique_ptr<Active> next;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      metrics_.waiting = static_cast<int64_t>(waiting_.size());
    }
    if (next->answer->cancelled()) {
      End(*next, Answer::End::kCancelled);
    } else if (Start(*next)) {
      active_.push_back(std::move(next));
      const std::lock_guard lock(mutex_);
      metrics_.active = static_cast<int64_t>(active_.size());
    } else {
      End(*next, Answer::End::kError, "there is no room in the cache");
    }
  }
}

void Scheduler::DropOldest() {
  const auto oldest =
      std::min_element(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  (void)model_.Remove(oldest->sequence);
  kept_.erase(oldest);
}

// What is under way may come to all of its room; what is kept gives way.
bool Scheduler::MakeRoom(int64_t tokens) {
  int64_t wanted = tokens;
  for (const auto& active : active_) wanted += active->Room() - active->done / kBlock * kBlock;
  while (model_.room() < wanted) {
    if (kept_.empty()) return false;
    DropOldest();
  }
  return true;
}

bool Scheduler::Start(Active& active) {
  // The last token is computed in any case: its logits are wanted.
  const int64_t most = static_cast<int64_t>(active.tokens.size()) - 1;
  Kept* best = nullptr;
  int64_t length = 0;
  for (Kept& kept : kept_) {
    const int64_t common = std::min(most, CommonLength(kept.tokens, active.tokens));
    // Where a state goes on with every token there is only that after all of them.
    if (common <= length || (!model_.rewinds() && common < static_cast<int64_t>(kept.tokens.size()))) continue;
    best = &kept;
    length = common;
  }
  if (best != nullptr) {
    best->used = model_.steps();
    if (static_cast<int64_t>(active_.size() + kept_.size()) >= most_ ||
        (model_.rewinds() && length == static_cast<int64_t>(best->tokens.size()))) {
      // Taken over: there is no number for another, or all of it is in the prompt and will be had back from there.
      active.sequence = best->sequence;
      (void)model_.Truncate(active.sequence, length);
      kept_.erase(kept_.begin() + (best - kept_.data()));
    } else {
      Result<int> fork = model_.Fork(best->sequence, length);
      active.sequence = fork.ok() ? *fork : -1;
    }
  }
  if (active.sequence < 0) {
    length = 0;
    if (static_cast<int64_t>(active_.size() + kept_.size()) >= most_) DropOldest();
    Result<int> added = model_.Add();
    if (!added.ok()) return false;
    active.sequence = *added;
  }
  active.done = length;
  active.answer->counts_.cached = length;
  return MakeRoom(active.Room() - length / kBlock * kBlock);
}

void Scheduler::Step() {
  std::vector<Active*> running;
  std::vector<SequenceStep> steps;
  int64_t prompt_rows = scheduling_.prompt_rows;
  for (const auto& active : active_) {
    if (active->answer->cancelled()) {
      End(*active, Answer::End::kCancelled);
      continue;
    }
    const std::span<const int32_t> rest = std::span(active->tokens).subspan(active->done);
    const int64_t count = rest.size() == 1 ? 1 : std::min<int64_t>(prompt_rows, static_cast<int64_t>(rest.size()));
    if (count == 0) continue;
    if (rest.size() > 1) prompt_rows -= count;
    running.push_back(active.get());
    steps.push_back({active->sequence, rest.first(count), count == static_cast<int64_t>(rest.size())});
  }
  const Stopwatch watch;
  Result<std::vector<std::vector<float>>> logits = model_.Step(steps);
  const double seconds = watch.Seconds();
  {
    const std::lock_guard lock(mutex_);
    metrics_.steps += steps.empty() ? 0 : 1;
    metrics_.step_seconds += seconds;
  }
  for (size_t i = 0; i < running.size(); ++i) {
    if (!logits.ok()) {
      End(*running[i], Answer::End::kError, logits.error());
      continue;
    }
    running[i]->done += static_cast<int64_t>(steps[i].ids.size());
    if (steps[i].logits) Take(*running[i], (*logits)[i]);
  }
  std::erase_if(active_, [](const auto& active) { return active->sequence < 0; });
}

// Draws the next token.
void Scheduler::Take(Active& active, const std::vector<float>& logits) {
  Result<int32_t> drawn = active.sampler.Draw(logits);
  if (!drawn.ok()) return End(active, Answer::End::kError, drawn.error());
  const int32_t id = *drawn;
  if (tokenizer_->IsEnd(id)) return End(active, Answer::End::kStop);
  active.tokens.push_back(id);
  ++active.drawn;
  // Before the text, so that no piece has text of tokens that it does not have.
  if (active.request.likeliest >= 0) active.answer->AddDrawn(Shares(id, logits, active.request.likeliest));
  active.answer->Add(active.stream.Add(id), 1);
  if (active.stream.stopped()) return End(active, Answer::End::kStop);
  if (active.drawn >= active.request.tokens) End(active, Answer::End::kTokens);
}

Drawn Scheduler::Shares(int32_t id, const std::vector<float>& logits, int likeliest) const {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  const double all = most + std::log(sum);
  const auto likely = [&](int32_t token) -> Likely {
    return {tokenizer_->Piece(token, true), logits[static_cast<size_t>(token)] - all};
  };
  Drawn drawn{likely(id), {}};
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto count = std::min<int64_t>(likeliest, static_cast<int64_t>(ids.size()));
  std::partial_sort(ids.begin(), ids.begin() + count, ids.end(),
                    [&](int32_t a, int32_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
  for (int64_t i = 0; i < count; ++i) drawn.best.push_back(likely(ids[i]));
  return drawn;
}

void Scheduler::End(Active& active, Answer::End end, std::string error) {
  if (active.sequence >= 0) {
    active.tokens.resize(active.done);
    // A step that failed may have come further.
    if (model_.Truncate(active.sequence, active.done).ok())
      kept_.push_back({active.sequence, active.tokens, model_.steps()});
    else
      (void)model_.Remove(active.sequence);
    active.sequence = -1;
    // A number is left for who comes next.
    while (static_cast<int64_t>(kept_.size()) > scheduling_.parallel) DropOldest();
  }
  if (end == Answer::End::kStop || end == Answer::End::kTokens) active.answer->Add(active.stream.Flush(), 0);
  const Answer::Counts counts = active.answer->counts();
  {
    const std::lock_guard lock(mutex_);
    ++(end == Answer::End::kCancelled ? metrics_.cancelled
       : end == Answer::End::kError   ? metrics_.failed
                                      : metrics_.finished);
    metrics_.prompt_tokens += counts.prompt;
    metrics_.cached_tokens += counts.cached;
    metrics_.answer_tokens += counts.answer;
  }
  active.answer->Finish(end, std::move(error));
}

}  // namespace quern::serve
