// Takes address space away for a while: what asks for more memory meanwhile is refused.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <cstdio>

namespace quern::testing {

// Allocators of sanitizers reserve address space that has no meaning here: tests that limit it are skipped there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kLimitsMemory = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kLimitsMemory = false;
#else
inline constexpr bool kLimitsMemory = true;
#endif
#else
inline constexpr bool kLimitsMemory = true;
#endif

class MemoryLimit {
 public:
  // `more`: bytes that are still to be had.
  explicit MemoryLimit(int64_t more) {
    getrlimit(RLIMIT_AS, &before_);
    long pages = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
      if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
      std::fclose(file);
    }
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(pages) * 4096 + static_cast<rlim_t>(more);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;

 private:
  rlimit before_;
};

}  // namespace quern::testing
