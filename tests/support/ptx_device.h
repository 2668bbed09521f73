// A device that runs PTX text (ptx_machine.h): memory of this machine, so that whole models run from the text that a
// driver gets.
//
//   auto executor = device::Executor::Create(ptx::MakeDevice(), signature, variants);
#pragma once

#include <memory>

#include "device/device.h"

namespace quern::ptx {

// Launches run on the calling thread, and may touch the pieces of memory that they are given pointers to, and no other.
// `descending`: threads of a block begin with the last.
std::shared_ptr<device::Device> MakeDevice(bool descending = false);

}  // namespace quern::ptx
