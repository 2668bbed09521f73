// A bounds-checked reader over bytes that are not trusted: no read leaves the span, and every error says what was being
// read and at which offset.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/status.h"

namespace quern {

class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint64_t offset() const { return offset_; }
  uint64_t left() const { return bytes_.size() - offset_; }

  // A little-endian number. `what` names it in the error.
  template <typename T>
  StatusOr<T> Read(std::string_view what) {
    static_assert(std::is_trivially_copyable_v<T>);
    QUERN_ASSIGN(const std::span<const uint8_t> bytes, Take(sizeof(T), what));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  // The next `count` bytes, as a view into the span.
  StatusOr<std::span<const uint8_t>> Take(uint64_t count, std::string_view what) {
    if (count > left()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the file ends inside %s: %u bytes wanted at offset %u, %u left", std::string(what), count, offset_, left()));
    }
    const std::span<const uint8_t> result = bytes_.subspan(offset_, count);
    offset_ += count;
    return result;
  }

 private:
  std::span<const uint8_t> bytes_;
  uint64_t offset_ = 0;
};

}  // namespace quern
