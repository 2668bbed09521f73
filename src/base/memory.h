// Memory of the runtime's own: 64-byte aligned, zero at first, pages that are never touched cost nothing.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace quern {

// Move-only. Large blocks ask for huge pages.
class Memory {
 public:
  // Errors: ResourceExhausted with the number of bytes.
  static StatusOr<Memory> Allocate(int64_t bytes);

  Memory() = default;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  uint8_t* data() const { return data_; }
  int64_t size() const { return size_; }
  std::span<uint8_t> bytes() const { return {data_, static_cast<size_t>(size_)}; }

 private:
  uint8_t* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace quern
