// Session and Sampler of the public interface.

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/stopwatch.h"
#include "compiler/checking.h"
#include "compiler/device_run.h"
#include "compiler/model.h"
#include "compiler/profiled.h"
#include "compiler/public_error.h"
#include "compiler/runtime_options.h"
#include "compiler/saved_rows.h"
#include "quern/profile.h"
#include "runtime/executable.h"
#include "text/tokenizer.h"

namespace quern {
namespace {}  // namespace

struct Session::State {
  std::shared_ptr<const ModelFile> file;
  models::ModelSpec spec;
  // Made when text is first asked for: a run of ids needs none, and what the file has may be unknown here.
  std::optional<Result<Tokenizer>> tokenizer;
  std::shared_ptr<check::Checker> checker;  // null: none was asked for
  std::shared_ptr<KernelCache> kernels;     // on the cpu; null on a device, where:
  ir::Graph graph;
  std::shared_ptr<compiler::DeviceCounts> counts;
  std::unique_ptr<Runnable> runnable;
  compiler::Profiled profiled;  // its executable is null on a device
  double prepare_seconds = 0;
  int threads = 0;
  int64_t position = 0;
  bool invariant = false;
  std::function<void(int64_t, int64_t)> progress;
  Timings timings;

  Status MakeExecutable(const std::string& path, const Options& options, const compiler::PipelineOptions& pipeline);
  Status MakeDeviceExecutor(const compiler::OpenedDevice& opened);

  void UpdateTimings() {
    const Runnable::Report& report = runnable->report();
    timings.compile = prepare_seconds + static_cast<double>(report.plan_ns + report.compile_ns) * 1e-9;
    timings.plans = static_cast<double>(report.plan_ns) * 1e-9;
    if (kernels == nullptr) {
      timings.kernels_compiled = counts->kernels;
      return;
    }
    const KernelCache::Report cache = kernels->report();
    const cpu::CompileTimes& times = cache.compile.times;
    timings.cached = static_cast<double>(cache.load_ns) * 1e-9;
    timings.llvm = static_cast<double>(times.emit + times.link + times.optimise + times.codegen) * 1e-9;
    timings.kernels_cached = cache.loaded;
    timings.kernels_compiled = cache.compiled;
  }

  // What all layers keep of the tokens, and the rows that it has.
  struct Caches {
    std::vector<std::span<uint8_t>> states;
    std::vector<compiler::KeptRows> rows;
  };
  StatusOr<Caches> FindCaches() {
    if (profiled.executable == nullptr) return absl::UnimplementedError("a session on a device is not kept as bytes");
    Caches caches;
    for (const Port& port : profiled.executable->signature().states) {
      QUERN_ASSIGN(const std::span<uint8_t> bytes, profiled.executable->State(port.name));
      caches.states.push_back(bytes);
      caches.rows.push_back(compiler::RowsOf(spec, port, bytes));
    }
    return caches;
  }

  // Runs ids in chunks; `all`: logits of every row, else of the last one.
  StatusOr<std::vector<float>> Step(std::span<const int32_t> ids, bool all) {
    if (ids.empty()) return absl::InvalidArgumentError("a step needs one token or more");
    for (const int32_t id : ids) {
      if (id < 0 || id >= spec.vocabulary) {
        return absl::InvalidArgumentError(
            absl::StrFormat("token id %d is out of range: the vocabulary has %d", id, spec.vocabulary));
      }
    }
    if (position + static_cast<int64_t>(ids.size()) > spec.context) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%u tokens at position %d do not fit the context of %d", ids.size(), position, spec.context));
    }
    std::vector<float> logits((all ? ids.size() : 1) * spec.vocabulary);
    float* out = logits.data();
    for (size_t at = 0; at < ids.size();) {
      const int64_t count =
          compiler::ChunkOf(static_cast<int64_t>(ids.size()), static_cast<int64_t>(ids.size() - at), invariant);
      const int64_t rows = all ? count : 1;
      const ConstBytes input{ids.data() + at, count * static_cast<int64_t>(sizeof(int32_t))};
      const MutableBytes output{out, rows * spec.vocabulary * static_cast<int64_t>(sizeof(float))};
      QUERN_RETURN_IF_ERROR(runnable->Run(
          {&input, 1}, {&output, 1},
          {{models::kSequenceSymbol, count}, {models::kPastSymbol, position}, {models::kLogitsSymbol, rows}}));
      timings.run += static_cast<double>(runnable->report().bind_ns + runnable->report().run_ns) * 1e-9;
      position += count;
      at += count;
      if (all) out += rows * spec.vocabulary;
      if (progress && static_cast<size_t>(count) < ids.size())
        progress(static_cast<int64_t>(at), static_cast<int64_t>(ids.size()));
    }
    UpdateTimings();
    return logits;
  }
};

// What runs the graph on this machine's processor.
Status Session::State::MakeExecutable(const std::string& path, const Options& options,
                                      const compiler::PipelineOptions& pipeline) {
  QUERN_ASSIGN(compiler::MadeExecutable made,
               compiler::MakeExecutable(spec.module, compiler::StepGuards(invariant), options, pipeline));
  threads = made.executable->threads();
  kernels = made.cache;
  checker = made.checker;
  profiled = {made.executable.get(), path,         models::kSequenceSymbol,
              options.exact,         spec.context, pipeline.spans,
              &spec.module,          made.graph,   pipeline,
              options.specialise};
  profiled.pipeline.spans = nullptr;
  runnable = std::move(made.executable);
  return absl::OkStatus();
}

Status Session::State::MakeDeviceExecutor(const compiler::OpenedDevice& opened) {
  QUERN_ASSIGN(graph, compiler::PrepareGraph(spec.module, opened.pipeline));
  threads = opened.threads;
  counts = std::make_shared<compiler::DeviceCounts>();
  QUERN_ASSIGN(runnable, compiler::MakeExecutor(&graph, compiler::StepGuardsOf(graph, invariant), opened, counts));
  return absl::OkStatus();
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::Open(const std::string& path, const Options& options) {
  auto open = [&]() -> StatusOr<std::unique_ptr<State>> {
    const Stopwatch load_watch;
    QUERN_ASSIGN(compiler::OpenedModel model, compiler::OpenModel(path, options));
    if (model.spec.encoder) {
      return absl::UnimplementedError(absl::StrFormat("%s: the architecture %s is an encoder, without a next token",
                                                      path, model.spec.architecture));
    }
    const TimeSpan load = load_watch.Span("load");
    const Stopwatch compile_watch;
    compiler::OpenedDevice opened;
    if (compiler::OnDevice(options)) {
      QUERN_ASSIGN(opened, compiler::OpenDevice(options));
    } else {
      QUERN_ASSIGN(opened.pipeline, compiler::PipelineOptionsOf(options));
    }
    compiler::PipelineOptions& pipeline = opened.pipeline;
    pipeline.spans = std::make_shared<TimeSpans>();
    pipeline.spans->push_back(load);
    // The module has its final address before what is made of it refers to it.
    auto state = std::make_unique<State>();
    state->file = std::move(model.file);
    state->spec = std::move(model.spec);
    state->invariant = options.invariant;
    state->progress = options.progress;
    QUERN_RETURN_IF_ERROR(opened.device == nullptr ? state->MakeExecutable(path, options, pipeline)
                                                   : state->MakeDeviceExecutor(opened));
    state->timings.passes = compile_watch.Seconds();
    QUERN_RETURN_IF_ERROR(compiler::BindParams(*state->runnable, state->spec));
    state->prepare_seconds = compile_watch.Seconds();
    QUERN_RETURN_IF_ERROR(
        state->runnable->Prepare({{models::kSequenceSymbol, 1}, {models::kPastSymbol, 0}, {models::kLogitsSymbol, 1}}));
    state->timings.load = static_cast<double>(load.duration) * 1e-9;
    state->UpdateTimings();
    return state;
  };
  StatusOr<std::unique_ptr<State>> state = open();
  if (!state.ok()) return Result<Session>::Failed(compiler::ErrorOf(state.status()));
  return Session(*std::move(state));
}

int64_t Session::vocabulary() const { return state_->spec.vocabulary; }
int64_t Session::context() const { return state_->spec.context; }
int64_t Session::position() const { return state_->position; }
int64_t Session::trained_context() const { return state_->spec.trained_context; }
int Session::threads() const { return state_->threads; }
std::string Session::fingerprint() const { return compiler::FingerprintOf(state_->spec); }
const Timings& Session::timings() const { return state_->timings; }
std::string Session::CheckSummary() const { return state_->checker == nullptr ? "" : state_->checker->Summary(); }

Result<Tokenizer> Session::tokenizer() const {
  State& state = *state_;
  if (!state.tokenizer) {
    auto made = compiler::TokenizerOf(state.file, state.spec.vocabulary);
    state.tokenizer =
        made.ok() ? Tokenizer(*std::move(made)) : Result<Tokenizer>::Failed(compiler::ErrorOf(made.status()));
  }
  return *state.tokenizer;
}

Result<std::vector<int32_t>> Session::Tokenize(std::string_view text, const TokenizeOptions& options) const {
  Result<Tokenizer> made = tokenizer();
  if (!made.ok()) return Result<std::vector<int32_t>>::Failed(made.details());
  return made->Encode(text, options);
}

std::string Session::Piece(int32_t id) const {
  Result<Tokenizer> made = tokenizer();
  return made.ok() ? made->Piece(id) : std::string();
}

bool Session::IsEnd(int32_t id) const {
  Result<Tokenizer> made = tokenizer();
  return made.ok() && made->IsEnd(id);
}

Result<std::vector<float>> Session::Step(std::span<const int32_t> ids) {
  StatusOr<std::vector<float>> logits = state_->Step(ids, false);
  if (!logits.ok()) return Result<std::vector<float>>::Failed(compiler::ErrorOf(logits.status()));
  return *std::move(logits);
}

Result<std::vector<float>> Session::StepAll(std::span<const int32_t> ids) {
  StatusOr<std::vector<float>> logits = state_->Step(ids, true);
  if (!logits.ok()) return Result<std::vector<float>>::Failed(compiler::ErrorOf(logits.status()));
  return *std::move(logits);
}

Result<Profiler> Profiler::Attach(Session& session, const ProfilerOptions& options) {
  if (session.state_->profiled.executable == nullptr) {
    return Result<Profiler>::Failed(
        compiler::ErrorOf(absl::UnimplementedError("a session on a device has no profile")));
  }
  return AttachTo(session.state_->profiled, options);
}

void Session::Reset() {
  // The cache is not cleared: positions past the current one are never read.
  state_->position = 0;
}

bool Session::rewinds() const { return !state_->spec.carries(); }

Result<void> Session::Rewind(int64_t position) {
  if (position < 0 || position > state_->position) {
    return compiler::ToResult(absl::InvalidArgumentError(
        absl::StrFormat("position %d is not in 0..%d, what the cache holds", position, state_->position)));
  }
  if (state_->spec.carries() && position > 0 && position < state_->position) {
    return compiler::ToResult(
        absl::UnimplementedError("this model's states go on with every token: it can go back to the beginning alone"));
  }
  state_->position = position;
  return {};
}

Result<std::vector<uint8_t>> Session::Save() const {
  const StatusOr<State::Caches> caches = state_->FindCaches();
  if (!caches.ok()) return Result<std::vector<uint8_t>>::Failed(compiler::ErrorOf(caches.status()));
  const int64_t length = state_->position;
  return compiler::WriteRows(caches->rows, length, [&](size_t s, uint8_t* to) {
    if (length > 0) std::memcpy(to, caches->states[s].data(), caches->rows[s].all(length));
  });
}

Result<void> Session::Load(std::span<const uint8_t> bytes) {
  const auto load = [&]() -> Status {
    QUERN_ASSIGN(const State::Caches caches, state_->FindCaches());
    QUERN_ASSIGN(const compiler::SavedRows saved, compiler::ReadRows(bytes, caches.rows, state_->spec.context));
    for (size_t s = 0; s < caches.rows.size(); ++s) {
      if (saved.length > 0) std::memcpy(caches.states[s].data(), saved.states[s], caches.rows[s].all(saved.length));
    }
    state_->position = saved.length;
    return absl::OkStatus();
  };
  return compiler::ToResult(load());
}

}  // namespace quern
