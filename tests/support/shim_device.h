// A device that runs Metal text: memory of this machine, and kernels compiled against the shim (metal_kernel.h), so
// that whole models run from the text that an Apple machine would compile.
//
//   auto executor = device::Executor::Create(MakeShimDevice(), signature, variants);
#pragma once

#include <memory>

#include "device/device.h"

namespace quern {

// Loads modules that have a text and kernels, of which it takes the number of parameters. Launches run on the calling
// thread.
std::shared_ptr<device::Device> MakeShimDevice();

}  // namespace quern
