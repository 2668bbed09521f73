// The tree of a vocabulary's pieces: every token where its bytes lead, in one walk.
#include "text/token_trie.h"

#include <gtest/gtest.h>

#include <random>

namespace quern::text {
namespace {

TEST(TokenTrie, HoldsEachPieceOnItsWay) {
  std::mt19937 random(9);
  std::vector<std::string> pieces = {"", "a", "ab", "b", "abc", "ab", std::string("\0\xFF", 2)};
  for (int i = 0; i < 500; ++i) {
    std::string piece;
    for (uint32_t k = random() % 7; k > 0; --k) piece += static_cast<char>(random() % 3 == 0 ? 0xFE : random() % 4);
    pieces.push_back(piece);
  }
  const TokenTrie trie(pieces, {20, 7});
  std::vector<int> seen(pieces.size());
  std::string path;
  std::vector<uint32_t> ends = {static_cast<uint32_t>(trie.nodes().size())};
  for (uint32_t i = 0; i < trie.nodes().size(); ++i) {
    const TokenTrie::Node& node = trie.nodes()[i];
    ASSERT_LE(node.depth, path.size() + 1);
    ASSERT_LE(node.depth, trie.depth());
    path.resize(node.depth - 1);
    ends.resize(node.depth);
    ASSERT_LE(node.end, ends.back()) << "below what is above it";
    for (const uint32_t end : ends) ASSERT_LT(i, end);
    path += static_cast<char>(node.byte);
    ends.push_back(node.end);
    for (uint32_t k = node.tokens; k < node.tokens_end; ++k) {
      const int32_t id = trie.tokens()[k];
      EXPECT_EQ(pieces[static_cast<size_t>(id)], path);
      ++seen[static_cast<size_t>(id)];
    }
  }
  for (size_t id = 0; id < pieces.size(); ++id) {
    const bool end = id == 7 || id == 20;
    EXPECT_EQ(seen[id], pieces[id].empty() || end ? 0 : 1) << id;
    EXPECT_EQ(trie.IsEnd(static_cast<int32_t>(id)), end);
    EXPECT_EQ(trie.Piece(static_cast<int32_t>(id)), end ? "" : pieces[id]);
  }
  EXPECT_FALSE(trie.IsEnd(-1));
}

}  // namespace
}  // namespace quern::text
