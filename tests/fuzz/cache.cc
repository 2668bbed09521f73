// An entry of the cache: an error, or one that is written as the same bytes.
#include <cstdlib>

#include "cache/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto entry = quern::cache::Decode(bytes);
  if (entry.ok() && quern::cache::Encode(*entry) != bytes) std::abort();
  return 0;
}
