#include "base/match.h"

#include <algorithm>

namespace quern {
namespace {

// By the shortest edit: E. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986.
class Matching {
 public:
  Matching(const std::vector<std::string>& a, const std::vector<std::string>& b) : a_(a), b_(b) {
    partner.assign(a.size(), -1);
    const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size());
    while (front_ < std::min(n, m) && a[front_] == b[front_]) Pair(front_, front_), ++front_;
    while (back_ < std::min(n, m) - front_ && a[n - 1 - back_] == b[m - 1 - back_])
      Pair(n - 1 - back_, m - 1 - back_), ++back_;
    Middle(n - front_ - back_, m - front_ - back_);
  }
  std::vector<int> partner;

 private:
  // The furthest x of each diagonal x - y is kept for every number of edits; beyond this many, the middle counts as
  // another one altogether.
  static constexpr int kMostEdits = 4000;

  void Pair(int x, int y) { partner[x] = y; }

  void Middle(int n, int m) {
    if (n <= 0 || m <= 0) return;
    const int most = std::min(n + m, kMostEdits);
    std::vector<std::vector<int>> furthest;  // by edits: of diagonals -edits, -edits + 2, ..
    const auto at = [&](int edits, int diagonal) {
      if (edits < 0 || diagonal < -edits || diagonal > edits) return -1;
      return furthest[edits][(diagonal + edits) / 2];
    };
    for (int edits = 0; edits <= most; ++edits) {
      furthest.emplace_back(edits + 1, -1);
      for (int diagonal = -edits; diagonal <= edits; diagonal += 2) {
        const int down = at(edits - 1, diagonal + 1), right = at(edits - 1, diagonal - 1);
        int x = edits == 0 ? 0 : std::max(down, right < 0 ? -1 : right + 1);
        if (x < 0 || x > n || x - diagonal < 0 || x - diagonal > m) continue;
        while (x < n && x - diagonal < m && a_[front_ + x] == b_[front_ + x - diagonal]) ++x;
        furthest[edits][(diagonal + edits) / 2] = x;
        if (x == n && x - diagonal == m) return Trace(at, edits, diagonal);
      }
    }
  }

  template <typename At>
  void Trace(const At& at, int edits, int diagonal) {
    for (; edits >= 0; --edits) {
      const int x = at(edits, diagonal), down = at(edits - 1, diagonal + 1), right = at(edits - 1, diagonal - 1);
      const bool from_right = edits > 0 && right >= 0 && right + 1 >= down;
      const int start = edits == 0 ? 0 : from_right ? right + 1 : down;
      for (int i = start; i < x; ++i) Pair(front_ + i, front_ + i - diagonal);
      diagonal += from_right ? -1 : 1;
    }
  }

  const std::vector<std::string>&a_, &b_;
  int front_ = 0, back_ = 0;
};

}  // namespace

std::vector<int> Match(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return Matching(a, b).partner;
}

}  // namespace quern
