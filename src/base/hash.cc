#include "base/hash.h"

#include <xxhash.h>

#include "absl/strings/str_format.h"

namespace quern {

std::string Hash128::ToHex() const { return absl::StrFormat("%016x%016x", high, low); }

Hash128 HashBytes(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

}  // namespace quern
