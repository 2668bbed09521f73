// Kernels for blocks of threads as one text of a target: what every emitter of such targets makes.
//
//   const DeviceTarget& target = ...;   // a row of the table of the target's folder
//   QUERN_ASSIGN(DeviceModule module, target.emit(kernels, symbols, target));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "family/target_facts.h"
#include "kir/kir.h"

namespace quern::codegen {

// How one kernel of a module is launched: a block of `threads` threads for each chunk of its grid, in one dimension.
struct DeviceKernel {
  std::string symbol;        // its entry in the text
  int64_t threads = 0;       // of a block
  int64_t shared_bytes = 0;  // that a block shares, all of it declared in the text
};

struct DeviceModule {
  std::string text;
  std::vector<DeviceKernel> kernels;  // in the order given
};

struct DeviceTarget {
  const char* name;       // what --target says
  const char* cpu;        // what --cpu says
  const char* features;   // for the emitter; may be empty
  const char* extension;  // of the text's file
  family::BlockFacts facts;
  // One entry a kernel, called symbols[i]: identifiers, no two equal. The kernels verify and are scheduled for blocks.
  // Deterministic. Errors: Unimplemented with the kernel and what has no form on the target.
  StatusOr<DeviceModule> (*emit)(std::span<const kir::Kernel> kernels, std::span<const std::string> symbols,
                                 const DeviceTarget& target);
};

}  // namespace quern::codegen
