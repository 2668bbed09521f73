// A device that is none: its memory is this machine's, and its launches run the scheduled KIR on the interpreter
// (kir/interpret.h), which checks every access and finds races between threads. Slow; the meaning that other devices
// are held to.
//
//   std::shared_ptr<Device> device = emulated::MakeDevice(2);
#pragma once

#include <memory>

#include "device/device.h"

namespace quern::device::emulated {

// Chunks of a launch are shared out over `threads` threads of this machine. With one thread the interpreter also sees
// what one chunk does to another's memory. Loads modules that have kernels; their text is not read.
std::shared_ptr<Device> MakeDevice(int threads);

}  // namespace quern::device::emulated
