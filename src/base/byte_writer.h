// What ByteReader reads: numbers as they lie in memory, behind one another.
#pragma once

#include <bit>
#include <type_traits>

namespace quern {

// Appends the bytes of a number, little-endian, to a string or a vector of bytes.
template <typename T, typename Bytes>
void PutBytes(Bytes& out, T value) {
  static_assert(std::endian::native == std::endian::little && std::is_trivially_copyable_v<T>);
  const auto* const bytes = reinterpret_cast<const char*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

}  // namespace quern
