// Apple's GPUs by the Metal framework, which compiles the text of codegen/metal when it is loaded. Built where
// QUERN_METAL is on (macOS), in Objective-C++.
//
//   QUERN_ASSIGN(std::shared_ptr<Device> device, metal::OpenDevice());
#pragma once

#include <memory>

#include "device/device.h"

namespace quern::device::metal {

// The system's default device. Memory is what it shares with this machine's processor.
// Errors: Unavailable where there is none, or one whose simdgroups are not of 32 threads.
StatusOr<std::shared_ptr<Device>> OpenDevice();

}  // namespace quern::device::metal
