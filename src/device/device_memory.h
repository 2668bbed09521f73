// Memory on a device that is given back at the end. Internal to the executor.
#pragma once

#include <utility>

#include "device/device.h"

namespace quern::device {

class DeviceMemory {
 public:
  // No bytes: no memory.
  static StatusOr<DeviceMemory> Allocate(Device& device, int64_t bytes) {
    DeviceMemory memory;
    if (bytes == 0) return memory;
    QUERN_ASSIGN(memory.address_, device.Allocate(bytes));
    memory.device_ = &device;
    memory.bytes_ = bytes;
    return memory;
  }
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory() {
    if (device_ != nullptr) (void)device_->Free(address_);  // nobody is left to hear of it
  }

  // Room for `bytes` at least; contents are lost where it grows. `moved` becomes true then.
  Status Reserve(Device& device, int64_t bytes, bool& moved) {
    if (bytes <= bytes_) return absl::OkStatus();
    moved = true;
    QUERN_ASSIGN(*this, Allocate(device, bytes));
    return absl::OkStatus();
  }

  Address address() const { return address_; }
  int64_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  Address address_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace quern::device
