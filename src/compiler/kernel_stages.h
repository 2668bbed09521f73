// The texts of a profile's kernels from blocks to assembly, with the lines that belong together: what its report shows
// side by side.
#pragma once

#include "compiler/profiled.h"
#include "profile/profile.h"

namespace quern::compiler {

// Fills Kernel::stages of every kernel of the profile, which is one of `profiled`. Fuses the graph and compiles the
// kernels again, with line tables: some milliseconds a kernel. Errors: those of the compiler.
Status AddStages(const Profiled& profiled, profile::Profile& profile);

}  // namespace quern::compiler
