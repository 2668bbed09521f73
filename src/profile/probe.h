// The measurements behind Machine: a few loops on the pool's threads. Internal to profile.
#pragma once

#include <string_view>

#include "profile/machine.h"
#include "runtime/thread_pool.h"

namespace quern::profile {

// Memory, operations and dispatch of the pool's threads at one level, in about 200 ms.
// Errors: no memory for the buffer that is read.
Status Probe(ThreadPool& pool, std::string_view level, Machine& machine);

}  // namespace quern::profile
