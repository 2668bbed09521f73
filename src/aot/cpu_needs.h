// What a level needs of a processor, as the words of CPUID that the compiled model tests when it starts.
#pragma once

#include <array>
#include <cstdint>

#include "aot/support/support.h"
#include "base/status.h"
#include "codegen/cpu/target.h"

namespace quern::aot {

struct CpuNeeds {
  std::array<uint32_t, QUERN_CPUID_WORDS> words{};
  uint32_t state = 0;       // bits of XCR0
  bool permission = false;  // of the system, for the tile registers
};
// Errors: a feature that the table does not know.
StatusOr<CpuNeeds> NeedsOf(const cpu::Target& target);

}  // namespace quern::aot
