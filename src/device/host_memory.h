// The memory of devices that have none of their own: pieces of this machine's, whose addresses are pointers. What is left to such a
// device is how it loads and launches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "device/device.h"

namespace quern::device {

class HostMemoryDevice : public Device {
 public:
  // Every byte 0xff: what nobody has written is NaN, not a zero that happens to be right.
  StatusOr<Address> Allocate(int64_t bytes) final;
  Status Free(Address address) final;
  Status CopyIn(Address to, const void* from, int64_t bytes) final;
  Status CopyOut(void* to, Address from, int64_t bytes) final;
  Status Fill(Address to, uint8_t value, int64_t bytes) final;
  Status Synchronise() final { return absl::OkStatus(); }

 protected:
  // `bytes` from `address` on, which lie in one piece. Error: they do not; `what` says who asks.
  StatusOr<uint8_t*> Find(Address address, int64_t bytes, const char* what) const;
  // The piece that holds the address; empty where none does.
  std::span<uint8_t> PieceOf(Address address) const;

 private:
  struct Freed {
    void operator()(uint8_t* memory) const;
  };
  struct Piece {
    std::unique_ptr<uint8_t, Freed> memory;
    int64_t bytes = 0;
  };
  std::map<Address, Piece> pieces_;
};

}  // namespace quern::device
