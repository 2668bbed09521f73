// The bytes of a vocabulary's tokens as a tree, so that what many of them begin with is looked at once.
//
//   pieces {"a", "ab", "b", "abc"}     nodes a{0} b{1} c{3} b{2}: in the order of a walk, each with where it ends
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quern::text {

// Immutable; thread-safe.
class TokenTrie {
 public:
  struct Node {
    uint8_t byte;
    uint32_t depth;               // of the first byte: 1
    uint32_t end;                 // the first node behind those below this one
    uint32_t tokens, tokens_end;  // those that end here: tokens()[tokens..tokens_end)
  };
  // pieces[id]: the bytes of a token, empty for one that stands for no text. `ends`: tokens that end a text; their own
  // bytes are not looked at.
  TokenTrie(const std::vector<std::string>& pieces, std::vector<int32_t> ends);

  // A parent comes before what is below it.
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const std::vector<int32_t>& ends() const { return ends_; }
  uint32_t depth() const { return depth_; }  // the greatest
  int32_t size() const { return static_cast<int32_t>(offsets_.size()) - 1; }
  // Of an id from 0 to size() - 1; empty for end tokens.
  std::string_view Piece(int32_t id) const {
    const auto at = static_cast<size_t>(id);
    return std::string_view(bytes_).substr(offsets_[at], offsets_[at + 1] - offsets_[at]);
  }
  bool IsEnd(int32_t id) const;

 private:
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_, ends_;  // ends_ rises
  uint32_t depth_ = 0;
  std::string bytes_;
  std::vector<size_t> offsets_;
};

}  // namespace quern::text
