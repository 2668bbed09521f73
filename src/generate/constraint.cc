#include "generate/constraint.h"

#include <algorithm>

namespace quern {
namespace {

using grammar::Matcher;

constexpr size_t kMostMaskBytes = size_t{32} << 20;

}  // namespace

bool TokenMask::empty() const {
  return std::all_of(bits_.begin(), bits_.end(), [](uint64_t bits) { return bits == 0; });
}

StatusOr<std::unique_ptr<Constraint>> Constraint::Make(std::string_view grammar,
                                                       std::shared_ptr<const text::TokenTrie> trie) {
  if (trie->ends().empty())
    return absl::InvalidArgumentError("the vocabulary has no token that ends a text, which a grammar needs");
  QUERN_ASSIGN(grammar::Grammar parsed, grammar::Grammar::Parse(grammar));
  return std::unique_ptr<Constraint>(
      new Constraint(std::make_shared<const grammar::Grammar>(std::move(parsed)), std::move(trie)));
}

void Constraint::Restart() { at_ = At::kBegin; }

Status Constraint::Ready() {
  if (at_ == At::kFailed) return absl::FailedPreconditionError("the answer left its grammar");
  if (at_ == At::kEnd) return absl::FailedPreconditionError("the answer has ended, as its grammar has it");
  if (at_ == At::kWithin) return absl::OkStatus();
  at_ = At::kFailed;
  QUERN_ASSIGN(state_, matcher_.Begin());
  at_ = At::kWithin;
  return absl::OkStatus();
}

StatusOr<TokenMask> Constraint::Walk() {
  TokenMask mask(trie_->size());
  const std::vector<text::TokenTrie::Node>& nodes = trie_->nodes();
  const std::vector<int32_t>& tokens = trie_->tokens();
  std::vector<Matcher::State> states(trie_->depth() + 1);  // behind each byte of the way to a node
  states[0] = state_;
  for (uint32_t i = 0; i < nodes.size();) {
    const text::TokenTrie::Node& node = nodes[i];
    Matcher::State state = matcher_.Known(states[node.depth - 1], node.byte);
    if (state == Matcher::kUnknown) {
      QUERN_ASSIGN(state, matcher_.Next(states[node.depth - 1], node.byte));
    }
    if (state == Matcher::kDead) {
      i = node.end;
      continue;
    }
    states[node.depth] = state;
    for (uint32_t k = node.tokens; k < node.tokens_end; ++k) mask.Set(tokens[k]);
    ++i;
  }
  if (matcher_.Accepts(state_)) {
    for (const int32_t id : trie_->ends()) mask.Set(id);
  }
  return mask;
}

StatusOr<const TokenMask*> Constraint::Allowed() {
  QUERN_RETURN_IF_ERROR(Ready());
  if (mask_bytes_ > kMostMaskBytes) masks_.clear(), mask_bytes_ = 0;
  if (matcher_.BeginToken(state_)) masks_.clear(), mask_bytes_ = 0;
  auto found = masks_.find(state_);
  if (found == masks_.end()) {
    StatusOr<TokenMask> mask = Walk();
    if (!mask.ok()) {
      at_ = At::kFailed;
      return mask.status();
    }
    mask_bytes_ += mask->bytes();
    found = masks_.emplace(state_, *std::move(mask)).first;
  }
  if (found->second.empty())
    return absl::FailedPreconditionError("no token of the vocabulary goes on with a text of the grammar");
  return &found->second;
}

Status Constraint::Accept(int32_t id) {
  QUERN_RETURN_IF_ERROR(Ready());
  at_ = At::kFailed;
  const Status wrong =
      absl::InvalidArgumentError(absl::StrFormat("token %d does not go on with a text of the grammar", id));
  if (id < 0 || id >= trie_->size()) return wrong;
  if (trie_->IsEnd(id)) {
    if (!matcher_.Accepts(state_)) return wrong;
    at_ = At::kEnd;
    return absl::OkStatus();
  }
  if (trie_->Piece(id).empty()) return wrong;
  if (matcher_.BeginToken(state_)) masks_.clear(), mask_bytes_ = 0;
  Matcher::State state = state_;
  for (const char byte : trie_->Piece(id)) {
    QUERN_ASSIGN(state, matcher_.Next(state, static_cast<uint8_t>(byte)));
  }
  if (state == Matcher::kDead) return wrong;
  state_ = state;
  at_ = At::kWithin;
  return absl::OkStatus();
}

bool Constraint::complete() {
  if (at_ == At::kEnd) return true;
  return Ready().ok() && matcher_.Accepts(state_);
}

}  // namespace quern
