// Constraint: which tokens a grammar lets come next. There is no way around it: where it cannot tell, for a limit of
// the matcher's, or lets nothing come, it says so, and no token is drawn.
//
// The tree of the vocabulary is walked once for each state of the matcher that a token is asked in; what was found is
// kept, since most tokens of most texts (those within a string of JSON) are asked for in a state that was there before.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "generate/grammar/matcher.h"
#include "text/token_trie.h"

namespace quern {

// A bit an id.
class TokenMask {
 public:
  explicit TokenMask(int32_t tokens = 0) : bits_((static_cast<size_t>(tokens) + 63) / 64) {}
  void Set(int32_t id) { bits_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64); }
  // False of ids that there are not.
  bool Has(size_t id) const { return id / 64 < bits_.size() && (bits_[id / 64] >> (id % 64) & 1) != 0; }
  bool empty() const;
  size_t bytes() const { return bits_.size() * sizeof(uint64_t); }

 private:
  std::vector<uint64_t> bits_;
};

// Not thread-safe.
class Constraint {
 public:
  // A text of `grammar` (grammar/grammar.h) in tokens of `trie`. Errors: those of Grammar::Parse; kInvalidArgument, a
  // vocabulary without a token that ends a text.
  static StatusOr<std::unique_ptr<Constraint>> Make(std::string_view grammar,
                                                    std::shared_ptr<const text::TokenTrie> trie);

  // What may come next: tokens whose bytes go on with a text of the grammar, maybe within a character; end tokens where
  // the text is whole. Valid until the next call. Errors: kResourceExhausted, a limit of the matcher's;
  // kFailedPrecondition, that nothing may come, or that the text has ended.
  StatusOr<const TokenMask*> Allowed();
  // The token that came. Errors: likewise, and kInvalidArgument for one that may not; then nothing may come until
  // Restart.
  Status Accept(int32_t id);
  // Another text begins.
  void Restart();
  // Whether what came is a whole text of the grammar, with an end token behind it or without.
  bool complete();

 private:
  Constraint(std::shared_ptr<const grammar::Grammar> grammar, std::shared_ptr<const text::TokenTrie> trie)
      : trie_(std::move(trie)), matcher_(std::move(grammar)) {}
  Status Ready();  // state_ is that of what came
  StatusOr<TokenMask> Walk();

  std::shared_ptr<const text::TokenTrie> trie_;
  grammar::Matcher matcher_;
  enum class At { kBegin, kWithin, kEnd, kFailed } at_ = At::kBegin;
  grammar::Matcher::State state_ = grammar::Matcher::kDead;
  std::unordered_map<grammar::Matcher::State, TokenMask> masks_;
  size_t mask_bytes_ = 0;
};

}  // namespace quern
