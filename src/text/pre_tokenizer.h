// How byte-level BPE splits a text into words before it merges: by a rule that tokenizer.ggml.pre names. A rule is a
// list of regular expressions, applied one after the other: what matches is a word, what lies between matches too, and
// the next expression works on each word alone.
//
//   "gpt-2":  "Hello  world's 123!" -> "Hello" " " " world" "'s" " 123" "!"
//
// Unicode's classes and the expressions are ICU's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quern::text {

// A row of the table in pre_tokenizer.cc.
struct SplitRule {
  std::string_view names;  // as files write them, divided by blanks
  // The expressions, in order; empty ones at the end. \s is Unicode's White_Space.
  std::string_view patterns[6];
  bool ignore_merges = false;  // a word that is a token is that token, whatever merges say
  bool add_begin = false;      // texts begin with the begin token unless the file says otherwise
};

// The rule called `name`; kUnimplemented with the names there are.
StatusOr<const SplitRule*> FindSplitRule(std::string_view name);
// The rule of these expressions, in order, as tokenizer.json files spell them; kUnimplemented with the expressions.
StatusOr<const SplitRule*> FindSplitRuleOf(std::span<const std::string> patterns, bool ignore_merges);
// What ByteLevel of such a file splits by.
extern const std::string_view kGpt2Pattern;
// An expression of the table as ICU's has to be written: \s and \S are Unicode's, where ICU's own leave out U+000B and
// U+0085.
std::string WithWhiteSpace(std::string_view pattern);
// Names of all rules, in the order of the table.
std::vector<std::string_view> SplitRuleNames();

// Immutable once made; thread-safe.
class PreTokenizer {
 public:
  static StatusOr<PreTokenizer> Make(const SplitRule& rule);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // Ends of the words of `text` in bytes, rising; the last is its size. A byte that is no part of valid UTF-8 is a
  // character of its own, of no class. Time and memory: proportional to the text's length.
  std::vector<size_t> Split(std::string_view text) const;

 private:
  struct State;
  explicit PreTokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quern::text
