// Memory that a kernel under test is given.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"

namespace quern {

// Memory of a parameter, 64-aligned, with guard bytes on both sides and an unmapped page not far behind: a write
// outside is seen, and a read of more than the guard behind the end stops the program.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(const std::vector<uint8_t>& bytes) : size_(static_cast<int64_t>(bytes.size())) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int64_t mapped = (size_ + 63) / 64 * 64 + kGuard;
    total_ = (mapped + kGuard + page - 1) / page * page + page;
    void* const memory = mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    QUERN_CHECK(memory != MAP_FAILED);
    start_ = static_cast<uint8_t*>(memory);
    std::memset(start_, kGuardByte, total_ - page);
    QUERN_CHECK(mprotect(start_ + total_ - page, page, PROT_NONE) == 0);
    end_ = start_ + total_ - page;
    data_ = end_ - mapped;
    std::copy(bytes.begin(), bytes.end(), data_);
  }
  GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept {
    std::swap(start_, other.start_), std::swap(end_, other.end_), std::swap(data_, other.data_);
    std::swap(size_, other.size_), std::swap(total_, other.total_);
    return *this;
  }
  ~GuardedBuffer() {
    if (start_ != nullptr) munmap(start_, total_);
  }
  uint8_t* data() const { return data_; }
  bool Intact() const {
    auto guard = [](uint8_t byte) { return byte == kGuardByte; };
    return std::all_of(start_, data_, guard) && std::all_of(data_ + size_, end_, guard);
  }
  std::vector<uint8_t> Bytes() const { return {data_, data_ + size_}; }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr uint8_t kGuardByte = 0xA5;
  uint8_t* start_ = nullptr;
  uint8_t* end_ = nullptr;
  uint8_t* data_ = nullptr;
  int64_t size_ = 0, total_ = 0;
};

}  // namespace quern
