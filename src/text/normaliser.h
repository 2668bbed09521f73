// What SentencePiece's "precompiled charsmap" makes of a text before it is split: the longest sequences of bytes that
// it knows are replaced by others. It is a double array, as words of 32 bits, and the replacements, each ended by a
// zero byte:
//
//   word   bits 0 to 7 its own byte, bit 8 whether a replacement hangs on it, bits 10 to 30 how far its children are,
//          times 256 with bit 9; of a replacement, with bit 31, where that begins
//
// Not trusted: what a text leads to outside the list is no sequence. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace quern::text {

class Normaliser {
 public:
  // Replaces nothing.
  Normaliser() = default;
  // `bytes`: the number of bytes of the array, that array, and the replacements; outlives this. Error: InvalidArgument,
  // for an array that is longer than the bytes, or replacements of which the last has no end.
  static StatusOr<Normaliser> Of(std::span<const uint8_t> bytes);

  struct Replaced {
    size_t taken = 0;  // bytes of the text; 0: nothing is replaced here
    std::string_view by;
  };
  // What the longest sequence that `text` begins with is replaced by.
  Replaced At(std::string_view text) const;

 private:
  uint32_t WordAt(size_t index) const;  // 0 outside the array

  std::span<const uint8_t> words_;
  std::string_view replacements_;
};

}  // namespace quern::text
