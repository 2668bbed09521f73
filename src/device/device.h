// Device: memory of its own, and blocks of threads that run kernels there. As thin as what drivers have in common;
// executor.h runs programs on one.
//
// Work is done in the order of the calls, and may be done later: host memory that a copy was given stays as it is until
// Synchronise returns, and an error may show in a later call. Not thread-safe. A device outlives what was made from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kir/kir.h"

namespace quern::device {

// Of a byte in the device's memory; 0: none. Memory starts at multiples of kMemoryAlign.
using Address = uint64_t;
inline constexpr int64_t kMemoryAlign = 256;

// Kernels to load: a text for its compiler, or, for a device that needs none, what the text says.
struct ModuleSource {
  struct Entry {
    std::string symbol;
    int64_t threads = 0;  // of a block
  };
  std::string text;
  std::vector<Entry> entries;
  std::vector<kir::Kernel> kernels;  // by entry; may be empty where there is a text
};

struct LoadedModule {
  uint64_t module = 0;
  std::vector<uint64_t> functions;  // by entry
};

// A block of a function's threads for each of `chunks` > 0. The tables are the caller's: they last for the call.
struct LaunchCall {
  uint64_t function = 0;
  int64_t chunks = 0;
  std::span<const Address> pointers;
  std::span<const int64_t> symbols;  // derived ones too
};

class Device {
 public:
  virtual ~Device() = default;

  // "NVIDIA H100 (sm_90)", for people.
  virtual std::string name() const = 0;

  virtual StatusOr<LoadedModule> Load(const ModuleSource& source) = 0;
  virtual Status Unload(uint64_t module) = 0;

  // The memory's contents are undefined. Precondition: bytes > 0.
  virtual StatusOr<Address> Allocate(int64_t bytes) = 0;
  virtual Status Free(Address address) = 0;
  virtual Status CopyIn(Address to, const void* from, int64_t bytes) = 0;
  virtual Status CopyOut(void* to, Address from, int64_t bytes) = 0;
  virtual Status Fill(Address to, uint8_t value, int64_t bytes) = 0;

  virtual Status Launch(const LaunchCall& call) = 0;
  // Waits until everything is done.
  virtual Status Synchronise() = 0;

  // A list of launches that the device keeps, so that running it again costs the host one call. Update changes one of
  // them, which keeps its function, for the replays from then on. Only where can_record().
  virtual bool can_record() const { return false; }
  virtual StatusOr<uint64_t> Record(std::span<const LaunchCall> calls) {
    (void)calls;
    return absl::UnimplementedError("the device keeps no lists of launches");
  }
  virtual Status Update(uint64_t recording, size_t launch, const LaunchCall& call) {
    (void)recording, (void)launch, (void)call;
    return absl::UnimplementedError("the device keeps no lists of launches");
  }
  virtual Status Replay(uint64_t recording) {
    (void)recording;
    return absl::UnimplementedError("the device keeps no lists of launches");
  }
  virtual Status Drop(uint64_t recording) {
    (void)recording;
    return absl::UnimplementedError("the device keeps no lists of launches");
  }
};

}  // namespace quern::device
