// BlockPool: which blocks of a cache are free, and how many sequences have each of the others.
#pragma once

#include <cstdint>
#include <vector>

namespace quern::compiler {

// Not thread-safe.
class BlockPool {
 public:
  explicit BlockPool(int64_t blocks) : owners_(blocks, 0) {
    for (int64_t b = blocks; b-- > 0;) free_.push_back(static_cast<int>(b));
  }
  int64_t size() const { return static_cast<int64_t>(owners_.size()); }
  int64_t left() const { return static_cast<int64_t>(free_.size()); }

  // A block with one owner. Precondition: left() > 0.
  int Take() {
    const int block = free_.back();
    free_.pop_back();
    owners_[block] = 1;
    return block;
  }
  // One owner more, and one less: without any it is free.
  void Share(int block) { ++owners_[block]; }
  void Give(int block) {
    if (--owners_[block] == 0) free_.push_back(block);
  }
  bool IsShared(int block) const { return owners_[block] > 1; }

 private:
  std::vector<int> owners_, free_;
};

}  // namespace quern::compiler
