// How much memory this process holds.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>

// Of the address sanitizer's run-time, and null without it: gives back what was freed, which it keeps for a while to
// notice whoever still uses it.
extern "C" __attribute__((weak)) void __sanitizer_purge_allocator();

namespace quern::testing {

// Resident bytes, without what was freed and only a sanitizer keeps.
inline int64_t ResidentBytes() {
  if (__sanitizer_purge_allocator != nullptr) __sanitizer_purge_allocator();
  long total = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
    if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace quern::testing
