// Embedder of the public interface.

#include "quern/embed.h"

#include <cmath>
#include <optional>

#include "codegen/matmul_plan.h"
#include "compiler/model.h"
#include "compiler/public_error.h"

namespace quern {
namespace {

using Vector = Result<std::vector<float>>;

// One row of `rows` [count, width], of length 1; one of zeros stays so.
std::vector<float> Pooled(const std::vector<float>& rows, int64_t width, Pooling pooling) {
  const int64_t count = static_cast<int64_t>(rows.size()) / width;
  const int64_t first = pooling == Pooling::kLast ? count - 1 : 0, last = pooling == Pooling::kFirst ? 0 : count - 1;
  std::vector<double> sum(width, 0);
  for (int64_t r = first; r <= last; ++r) {
    for (int64_t i = 0; i < width; ++i) sum[i] += rows[r * width + i];
  }
  double squares = 0;
  for (const double value : sum) squares += value * value;
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  std::vector<float> pooled(width);
  for (int64_t i = 0; i < width; ++i) pooled[i] = static_cast<float>(sum[i] * scale);
  return pooled;
}

}  // namespace

struct Embedder::State {
  std::unique_ptr<compiler::RunningModel> model;
  std::optional<Result<Tokenizer>> tokenizer;
  const models::ModelSpec& spec() const { return model->opened.spec; }

  Pooling PoolingOf(Pooling asked) const {
    if (asked != Pooling::kModel) return asked;
    if (spec().pooling == models::Pooling::kFirst) return Pooling::kFirst;
    return spec().pooling == models::Pooling::kLast ? Pooling::kLast : Pooling::kMean;
  }
};

Embedder::Embedder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Embedder::Embedder(Embedder&&) noexcept = default;
Embedder& Embedder::operator=(Embedder&&) noexcept = default;
Embedder::~Embedder() = default;

Result<Embedder> Embedder::Open(const std::string& path, const Options& options) {
  auto open = [&]() -> StatusOr<std::unique_ptr<State>> {
    QUERN_ASSIGN(compiler::OpenedModel opened, compiler::OpenModel(path, options));
    if (!opened.spec.encoder) {
      return absl::UnimplementedError(
          absl::StrFormat("%s: the architecture %s is no encoder", path, opened.spec.architecture));
    }
    const int64_t few = codegen::kFewRows;
    const std::vector<SymbolRanges> guards = {{{models::kSequenceSymbol, {1, few}}},
                                              {{models::kSequenceSymbol, {few + 1, opened.spec.context}}}};
    auto state = std::make_unique<State>();
    QUERN_ASSIGN(state->model, compiler::RunModel(std::move(opened), options, guards));
    return state;
  };
  StatusOr<std::unique_ptr<State>> state = open();
  if (!state.ok()) return Result<Embedder>::Failed(compiler::ErrorOf(state.status()));
  return Embedder(*std::move(state));
}

int64_t Embedder::width() const { return state_->spec().width; }
int64_t Embedder::context() const { return state_->spec().context; }

Result<Tokenizer> Embedder::tokenizer() const {
  if (!state_->tokenizer) {
    const auto made = compiler::TokenizerOf(state_->model->opened.file, state_->spec().vocabulary);
    state_->tokenizer = made.ok() ? Tokenizer(*made) : Result<Tokenizer>::Failed(compiler::ErrorOf(made.status()));
  }
  return *state_->tokenizer;
}

Vector Embedder::Rows(std::span<const int32_t> ids) {
  auto run = [&]() -> StatusOr<std::vector<float>> {
    const models::ModelSpec& spec = state_->spec();
    const int64_t count = static_cast<int64_t>(ids.size());
    if (count == 0) return absl::InvalidArgumentError("a text needs one token or more");
    if (count > spec.context)
      return absl::InvalidArgumentError(absl::StrFormat("%d tokens do not fit the context of %d", count, spec.context));
    for (const int32_t id : ids) {
      if (id < 0 || id >= spec.vocabulary) {
        return absl::InvalidArgumentError(
            absl::StrFormat("token id %d is out of range: the vocabulary has %d", id, spec.vocabulary));
      }
    }
    std::vector<float> rows(count * spec.width);
    const ConstBytes input{ids.data(), count * static_cast<int64_t>(sizeof(int32_t))};
    const MutableBytes output{rows.data(), static_cast<int64_t>(rows.size() * sizeof(float))};
    QUERN_RETURN_IF_ERROR(
        state_->model->made.executable->Run({&input, 1}, {&output, 1}, {{models::kSequenceSymbol, count}}));
    return rows;
  };
  return compiler::ToResult(run());
}

Vector Embedder::Embed(std::span<const int32_t> ids, Pooling pooling) {
  Vector rows = Rows(ids);
  if (!rows.ok()) return rows;
  return Pooled(*rows, width(), state_->PoolingOf(pooling));
}

Vector Embedder::Embed(std::string_view text, Pooling pooling) {
  Result<Tokenizer> made = tokenizer();
  if (!made.ok()) return Vector::Failed(made.details());
  return Embed(made->Encode(text, {.begin = true, .parse_special = false}), pooling);
}

}  // namespace quern
