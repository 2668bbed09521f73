// The memory of devices that have none of their own: pieces of this machine's, whose addresses are pointers. What is
// left to such a device is how it loads and launches. In a header, as tests derive from it, which have type information
// where the library has none.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <span>

#include "absl/strings/str_format.h"
#include "device/device.h"

namespace quern::device {

class HostMemoryDevice : public Device {
 public:
  // Every byte 0xff: what nobody has written is NaN, not a zero that happens to be right.
  StatusOr<Address> Allocate(int64_t bytes) final {
    const auto size = static_cast<size_t>((bytes + kMemoryAlign - 1) / kMemoryAlign * kMemoryAlign);
    Held held{std::unique_ptr<uint8_t, Freed>(static_cast<uint8_t*>(std::aligned_alloc(kMemoryAlign, size))), bytes};
    if (held.memory == nullptr) return absl::ResourceExhaustedError(absl::StrFormat("no memory for %d bytes", bytes));
    std::memset(held.memory.get(), 0xff, size);
    const auto address = reinterpret_cast<Address>(held.memory.get());
    pieces_.emplace(address, std::move(held));
    return address;
  }
  Status Free(Address address) final {
    return pieces_.erase(address) == 1 ? absl::OkStatus() : absl::InvalidArgumentError("no memory to free");
  }
  Status CopyIn(Address to, const void* from, int64_t bytes) final {
    QUERN_ASSIGN(uint8_t* const memory, Find(to, bytes, "a copy in"));
    std::memcpy(memory, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  Status CopyOut(void* to, Address from, int64_t bytes) final {
    QUERN_ASSIGN(const uint8_t* const memory, Find(from, bytes, "a copy out"));
    std::memcpy(to, memory, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  Status Fill(Address to, uint8_t value, int64_t bytes) final {
    QUERN_ASSIGN(uint8_t* const memory, Find(to, bytes, "a fill"));
    std::memset(memory, value, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  Status Synchronise() final { return absl::OkStatus(); }

 protected:
  // The piece that holds the address; empty where none does.
  std::span<uint8_t> PieceOf(Address address) const {
    auto next = pieces_.upper_bound(address);
    if (next == pieces_.begin()) return {};
    const auto& [start, held] = *std::prev(next);
    if (address - start > static_cast<Address>(held.bytes)) return {};
    return {held.memory.get(), static_cast<size_t>(held.bytes)};
  }
  // `bytes` from `address` on, which lie in one piece. Error: they do not; `what` says who asks.
  StatusOr<uint8_t*> Find(Address address, int64_t bytes, const char* what) const {
    const std::span<uint8_t> piece = PieceOf(address);
    const auto at = static_cast<int64_t>(address - reinterpret_cast<Address>(piece.data()));
    if (!piece.empty() && bytes >= 0 && at <= static_cast<int64_t>(piece.size()) - bytes) return piece.data() + at;
    if (bytes == 0) return nullptr;
    return absl::InvalidArgumentError(absl::StrFormat("%s of %d bytes is not in the device's memory", what, bytes));
  }

 private:
  struct Freed {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  struct Held {
    std::unique_ptr<uint8_t, Freed> memory;
    int64_t bytes = 0;
  };
  std::map<Address, Held> pieces_;
};

}  // namespace quern::device
