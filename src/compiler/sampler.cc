// Sampler of the public interface.
#include "generate/sampler.h"

#include <algorithm>

#include "compiler/public_error.h"
#include "generate/grammar/grammar.h"
#include "generate/json_schema.h"
#include "quern/quern.h"
#include "text/tokenizer.h"

namespace quern {

struct Sampler::State {
  TokenSampler sampler;
  bool closed = false;  // a tokenizer is needed, and there is none
};

namespace {

Status Check(const SamplingOptions& options) {
  QUERN_RETURN_IF_ERROR(CheckSamplingOptions(options));
  return options.grammar.empty() ? absl::OkStatus() : grammar::Grammar::Parse(options.grammar).status();
}

// Ids of tokens that have one of the texts in them, rising. `tokenizer` may be null where there are no texts.
std::vector<int32_t> TokensThatHold(const std::vector<std::string>& texts, const Tokenizer* tokenizer) {
  std::vector<int32_t> ids;
  if (texts.empty()) return ids;
  for (int32_t id = 0; id < tokenizer->size(); ++id) {
    const std::string piece = tokenizer->Piece(id, /*special=*/true);
    const auto holds = [&](const std::string& text) { return piece.find(text) != std::string::npos; };
    if (std::ranges::any_of(texts, holds)) ids.push_back(id);
  }
  return ids;
}

}  // namespace

Result<std::string> GrammarOfJsonSchema(std::string_view schema) {
  StatusOr<std::string> grammar = json_schema::Grammar(schema);
  return grammar.ok() ? Result<std::string>(*std::move(grammar))
                      : Result<std::string>::Failed(compiler::ErrorOf(grammar.status()));
}

Result<void> CheckSampling(const SamplingOptions& options) { return compiler::ToResult(Check(options)); }

Result<Sampler> Sampler::Make(const SamplingOptions& options, const Tokenizer* tokenizer) {
  const auto failed = [](const Status& status) { return Result<Sampler>::Failed(compiler::ErrorOf(status)); };
  if (const Status ok = CheckSamplingOptions(options); !ok.ok()) return failed(ok);
  if (options.needs_tokenizer() && tokenizer == nullptr) {
    return failed(
        absl::InvalidArgumentError(std::string(options.grammar.empty() ? "dry_breakers need" : "a grammar needs") +
                                   " the tokenizer whose tokens are drawn"));
  }
  std::unique_ptr<Constraint> constraint;
  if (!options.grammar.empty()) {
    StatusOr<std::unique_ptr<Constraint>> made = Constraint::Make(options.grammar, tokenizer->tokenizer_->trie());
    if (!made.ok()) return failed(made.status());
    constraint = *std::move(made);
  }
  std::vector<int32_t> breakers;
  if (options.dry_multiplier > 0) breakers = TokensThatHold(options.dry_breakers, tokenizer);
  Sampler sampler(SamplingOptions{});
  sampler.state_ = std::make_unique<State>(State{TokenSampler(options, std::move(constraint), std::move(breakers))});
  return sampler;
}

Sampler::Sampler(const SamplingOptions& options) {
  const bool right = CheckSamplingOptions(options).ok();
  state_ = std::make_unique<State>(
      State{.sampler = TokenSampler(right ? options : SamplingOptions{}), .closed = options.needs_tokenizer()});
}
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

void Sampler::Observe(std::span<const int32_t> ids) { state_->sampler.Observe(ids); }
void Sampler::Forget() { state_->sampler.Forget(); }
bool Sampler::complete() const { return !state_->closed && state_->sampler.complete(); }

Result<int32_t> Sampler::Draw(std::span<const float> logits) {
  const auto failed = [](const Status& status) { return Result<int32_t>::Failed(compiler::ErrorOf(status)); };
  if (state_->closed)
    return failed(absl::InvalidArgumentError("samplers that need a tokenizer are made by Sampler::Make"));
  if (logits.empty()) {
    if (!state_->sampler.constrained()) return 0;
    return failed(absl::InvalidArgumentError("there are no logits to draw from"));
  }
  const StatusOr<int32_t> id = state_->sampler.Draw(logits);
  return id.ok() ? Result<int32_t>(*id) : failed(id.status());
}

int32_t Sampler::Next(std::span<const float> logits) {
  Result<int32_t> id = Draw(logits);
  return id.ok() ? *id : -1;
}

}  // namespace quern
