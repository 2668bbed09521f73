// Launches that a device keeps, and what they were recorded with: only what differs is updated. Internal to the
// executor.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "device/device.h"

namespace quern::device {

class Recording {
 public:
  static StatusOr<Recording> Make(Device& device, std::span<const LaunchCall> calls) {
    Recording made;
    QUERN_ASSIGN(made.id_, device.Record(calls));
    made.device_ = &device;
    for (const LaunchCall& call : calls) made.kept_.emplace_back(call);
    return made;
  }
  Recording() = default;
  Recording(Recording&& other) noexcept { *this = std::move(other); }
  Recording& operator=(Recording&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(id_, other.id_);
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~Recording() {
    if (device_ != nullptr) (void)device_->Drop(id_);
  }

  // Whether `calls` are launches of the same functions.
  bool Fits(std::span<const LaunchCall> calls) const {
    if (calls.size() != kept_.size()) return false;
    for (size_t l = 0; l < calls.size(); ++l) {
      if (calls[l].function != kept_[l].function) return false;
    }
    return true;
  }

  // Precondition: they fit. Returns how many were updated. After an error nothing is known of the recording.
  StatusOr<int> Update(std::span<const LaunchCall> calls) {
    int updates = 0;
    for (size_t l = 0; l < calls.size(); ++l) {
      if (kept_[l].Is(calls[l])) continue;
      QUERN_RETURN_IF_ERROR(device_->Update(id_, l, calls[l]));
      kept_[l] = Kept(calls[l]);
      ++updates;
    }
    return updates;
  }
  Status Replay() { return device_->Replay(id_); }

 private:
  struct Kept {
    explicit Kept(const LaunchCall& call)
        : function(call.function),
          chunks(call.chunks),
          pointers(call.pointers.begin(), call.pointers.end()),
          symbols(call.symbols.begin(), call.symbols.end()) {}
    bool Is(const LaunchCall& call) const {
      return chunks == call.chunks &&
             std::equal(pointers.begin(), pointers.end(), call.pointers.begin(), call.pointers.end()) &&
             std::equal(symbols.begin(), symbols.end(), call.symbols.begin(), call.symbols.end());
    }
    uint64_t function;
    int64_t chunks;
    std::vector<Address> pointers;
    std::vector<int64_t> symbols;
  };
  Device* device_ = nullptr;
  uint64_t id_ = 0;
  std::vector<Kept> kept_;
};

}  // namespace quern::device
