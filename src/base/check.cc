#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace quern {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "quern: internal error at %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace quern
