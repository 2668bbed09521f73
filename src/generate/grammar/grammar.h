// A grammar that texts are held to, compiled: what a matcher (matcher.h) walks.
//
// Each rule is an automaton whose steps are a character of a set, a call of another rule, or a choice. Since no rule is
// left-recursive, and every rule ends, a text can be followed character by character, and each beginning that is let
// through is one of some whole text.
//
//   root ::= "a" root | "b"      0: fork 1, 3   1: 'a' -> 2   2: call root -> end   3: 'b' -> end
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "generate/grammar/code_points.h"

namespace quern::grammar {

// A grammar may come from anyone: what it costs is bounded.
inline constexpr size_t kMostText = size_t{1} << 20;  // bytes
inline constexpr int kMostRules = 16384;              // and as many repeated groups
inline constexpr int kMostNesting = 100;              // brackets within brackets
inline constexpr int kMostRepeats = 65536;            // a count in {m,n}
inline constexpr size_t kMostNodes = size_t{1} << 18;

struct Node {
  enum class Kind : uint8_t { kChars, kCall, kFork, kEnd };
  Kind kind = Kind::kEnd;
  int32_t value = 0;  // kChars: the first of the states of its bytes; kCall: a rule; kFork: a node
  int32_t next = 0;   // a node; none of kEnd
};

// Immutable.
class Grammar {
 public:
  // kInvalidArgument: errors of ParseSyntax, left recursion, a rule that no text ends, with the place of the rule.
  // kResourceExhausted: more than the limits allow.
  static StatusOr<Grammar> Parse(std::string_view text);

  const Node& node(int32_t index) const { return nodes_[static_cast<size_t>(index)]; }
  // The node that a rule begins with.
  int32_t begin(int32_t rule) const { return begins_[static_cast<size_t>(rule)]; }
  int32_t root() const { return root_; }
  const ByteStates& bytes() const { return bytes_; }

 private:
  friend class Compiler;
  Grammar() = default;
  std::vector<Node> nodes_;
  std::vector<int32_t> begins_;  // named rules, then groups that are repeated
  int32_t root_ = 0;
  ByteStates bytes_;
};

}  // namespace quern::grammar
