// Checks for internal errors (bugs in Quern, never bad input): on in every build, print where and stop.
#pragma once

namespace quern {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace quern

#define QUERN_CHECK(condition) \
  (static_cast<bool>(condition) ? void() : ::quern::CheckFailed(__FILE__, __LINE__, #condition))
#ifdef NDEBUG
#define QUERN_DCHECK(condition) void(sizeof(static_cast<bool>(condition)))
#else
#define QUERN_DCHECK(condition) QUERN_CHECK(condition)
#endif
