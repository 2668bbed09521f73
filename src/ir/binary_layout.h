// What both directions of the binary form share.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quern::ir::binary {

inline constexpr std::string_view kMagic = "QUERNGRF";
inline constexpr uint64_t kHeaderBytes = 64, kDataAlign = 64, kHashBytes = 16;

inline std::string_view Chars(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline uint64_t RoundUp(uint64_t value) { return (value + kDataAlign - 1) / kDataAlign * kDataAlign; }

}  // namespace quern::ir::binary
