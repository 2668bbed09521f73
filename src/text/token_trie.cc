#include "text/token_trie.h"

#include <algorithm>
#include <numeric>

namespace quern::text {

TokenTrie::TokenTrie(const std::vector<std::string>& pieces, std::vector<int32_t> ends) : ends_(std::move(ends)) {
  std::sort(ends_.begin(), ends_.end());
  offsets_.push_back(0);
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!IsEnd(static_cast<int32_t>(id))) bytes_ += pieces[id];
    offsets_.push_back(bytes_.size());
  }
  std::vector<int32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int32_t id) { return Piece(id).empty(); });
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int order = Piece(a).compare(Piece(b));
    return order != 0 ? order < 0 : a < b;
  });
  std::vector<uint32_t> path;  // the nodes of the last piece
  const auto leave = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
  };
  for (const int32_t id : order) {
    const std::string_view piece = Piece(id);
    size_t common = 0;
    while (common < std::min(path.size(), piece.size()) &&
           nodes_[path[common]].byte == static_cast<uint8_t>(piece[common])) {
      ++common;
    }
    leave(common);
    const auto at = static_cast<uint32_t>(tokens_.size());
    for (size_t i = common; i < piece.size(); ++i) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({static_cast<uint8_t>(piece[i]), static_cast<uint32_t>(i + 1), 0, at, at});
    }
    tokens_.push_back(id);
    ++nodes_[path.back()].tokens_end;
    depth_ = std::max(depth_, static_cast<uint32_t>(piece.size()));
  }
  leave(0);
}

bool TokenTrie::IsEnd(int32_t id) const { return std::binary_search(ends_.begin(), ends_.end(), id); }

}  // namespace quern::text
