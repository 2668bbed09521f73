// Sets of characters, and the automaton of their UTF-8 bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quern::grammar {

inline constexpr uint32_t kLastCodePoint = 0x10FFFF;
inline bool IsSurrogate(uint32_t point) { return point >= 0xD800 && point <= 0xDFFF; }

// First and last of each range.
using CodePoints = std::vector<std::pair<uint32_t, uint32_t>>;

// Sorted, disjoint, not touching, without surrogates: equal sets are equal vectors.
CodePoints Normalised(CodePoints points);
// All that is not in `points`, which is normalised; so is the result.
CodePoints Complement(const CodePoints& points);

// The code point that `text`, which is not empty, begins with, and how many bytes it has; 0 bytes where they are no
// UTF-8 (Unicode Standard, table 3-7).
std::pair<uint32_t, int> Decode(std::string_view text);
std::string Encode(uint32_t point);

// One automaton for all the sets of a grammar. A set's bytes lead from its first state to kMatched; equal rests of
// characters share states, whichever set they are of.
class ByteStates {
 public:
  static constexpr uint16_t kDead = 0, kMatched = 1;
  // Its states at most; 512 bytes each.
  static constexpr size_t kMost = 16384;

  // The first state of a normalised set; kDead where there would be too many states, or the set is empty.
  uint16_t Of(const CodePoints& points);
  // Of one byte alone, which may be part of a character.
  uint16_t OfByte(uint8_t byte);
  uint16_t Next(uint16_t state, uint8_t byte) const { return next_[state][byte]; }

 private:
  using Row = std::array<uint16_t, 256>;
  // The state of characters that lack `rest` bytes, whose bits are in `points`.
  uint16_t Rest(int rest, const CodePoints& points);
  uint16_t Keep(int kind, const CodePoints& points, const Row& row);

  std::vector<Row> next_ = std::vector<Row>(2);
  std::map<std::pair<int, CodePoints>, uint16_t> known_;  // kind: bytes that lack; -1 of whole sets, -2 of single bytes
  bool full_ = false;
};

}  // namespace quern::grammar
