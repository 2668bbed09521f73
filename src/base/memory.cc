#include "base/memory.h"

#include <sys/mman.h>

#include <utility>

#include "base/huge_pages.h"

namespace quern {

StatusOr<Memory> Memory::Allocate(int64_t bytes) {
  Memory memory;
  if (bytes <= 0) return memory;
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrFormat("%d bytes of memory cannot be had", bytes));
  AskForHugePages(data, static_cast<size_t>(bytes));
  memory.data_ = static_cast<uint8_t*>(data);
  memory.size_ = bytes;
  return memory;
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
}

}  // namespace quern
