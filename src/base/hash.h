// A stable 128-bit hash (XXH3) for compile keys and deduplication. Not a defence against chosen collisions.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace quern {

struct Hash128 {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128&) const = default;
  std::string ToHex() const;
};

Hash128 HashBytes(std::string_view bytes);

}  // namespace quern
