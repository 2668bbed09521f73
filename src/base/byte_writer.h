// What ByteReader reads: numbers as they lie in memory, behind one another.
#pragma once

#include <bit>
#include <string>
#include <type_traits>

namespace quern {

// Appends the bytes of a number, little-endian.
template <typename T>
void PutBytes(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little && std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace quern
