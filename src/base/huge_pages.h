// Memory that is read or written from one end to the other, in pages of 2 MiB where the system has such.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace quern {

// Of a mapping, before it is touched; a small one gains nothing. A system without them ignores it.
inline void AskForHugePages(void* data, size_t bytes) {
  constexpr size_t kWorthHugePages = size_t{4} << 20;
  if (bytes >= kWorthHugePages) madvise(data, bytes, MADV_HUGEPAGE);
}

}  // namespace quern
