#include "generate/grammar/code_points.h"

#include <algorithm>
#include <string>

namespace quern::grammar {
namespace {

constexpr std::pair<uint32_t, uint32_t> kSurrogates = {0xD800, 0xDFFF};

// What of `points` lies in first..last, less `first`.
CodePoints Window(const CodePoints& points, uint32_t first, uint32_t last, uint32_t base) {
  CodePoints window;
  for (const auto& [low, high] : points) {
    if (low <= last && high >= first) window.emplace_back(std::max(low, first) - base, std::min(high, last) - base);
  }
  return window;
}

}  // namespace

CodePoints Normalised(CodePoints points) {
  std::sort(points.begin(), points.end());
  CodePoints joined;
  for (const auto& range : points) {
    if (!joined.empty() && range.first <= joined.back().second + 1)
      joined.back().second = std::max(joined.back().second, range.second);
    else
      joined.push_back(range);
  }
  CodePoints result;
  for (const auto& [first, last] : joined) {
    if (first < kSurrogates.first) result.emplace_back(first, std::min(last, kSurrogates.first - 1));
    if (last > kSurrogates.second) result.emplace_back(std::max(first, kSurrogates.second + 1), last);
  }
  return result;
}

CodePoints Complement(const CodePoints& points) {
  CodePoints result;
  uint32_t next = 0;
  for (const auto& [first, last] : points) {
    if (first > next) result.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLastCodePoint) result.emplace_back(next, kLastCodePoint);
  return Normalised(std::move(result));
}

std::pair<uint32_t, int> Decode(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const int length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return {0, 0};
  uint32_t point = lead & (0xFF >> (length + 1));
  for (int i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    point = point << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0x80, 0x800, 0x10000};
  if (point < kLeast[length - 2] || point > kLastCodePoint || IsSurrogate(point)) return {0, 0};
  return {point, length};
}

std::string Encode(uint32_t point) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (point >> shift & 0x3F)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0 | point >> 6), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0 | point >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | point >> 18), tail(12), tail(6), tail(0)};
}

uint16_t ByteStates::Keep(int kind, const CodePoints& points, const Row& row) {
  if (next_.size() == kMost) full_ = true;
  if (full_) return kDead;
  next_.push_back(row);
  return known_[{kind, points}] = static_cast<uint16_t>(next_.size() - 1);
}

uint16_t ByteStates::OfByte(uint8_t byte) {
  const CodePoints key = {{byte, byte}};
  if (const auto found = known_.find({-2, key}); found != known_.end()) return found->second;
  Row row = {};
  row[byte] = kMatched;
  return Keep(-2, key, row);
}

uint16_t ByteStates::Of(const CodePoints& points) {
  if (points.empty()) return kDead;
  if (const auto found = known_.find({-1, points}); found != known_.end()) return found->second;
  Row row = {};
  for (const auto& [first, last] : points) {
    for (uint32_t point = first; point <= last && point < 0x80; ++point) row[point] = kMatched;
  }
  struct Leads {
    uint32_t first, last, mask, least;
    int rest;
  };
  // Unicode Standard, table 3-7; surrogates are in no set.
  constexpr Leads kLeads[] = {{0xC2, 0xDF, 0x1F, 0x80, 1}, {0xE0, 0xEF, 0x0F, 0x800, 2}, {0xF0, 0xF4, 7, 0x10000, 3}};
  for (const Leads& leads : kLeads) {
    for (uint32_t lead = leads.first; lead <= leads.last; ++lead) {
      const int bits = 6 * leads.rest;
      const uint32_t base = (lead & leads.mask) << bits, last = std::min(base | ((1u << bits) - 1), kLastCodePoint);
      row[lead] = Rest(leads.rest, Window(points, std::max(base, leads.least), last, base));
    }
  }
  const uint16_t state = Keep(-1, points, row);
  return full_ ? kDead : state;
}

uint16_t ByteStates::Rest(int rest, const CodePoints& points) {
  if (points.empty() || full_) return kDead;
  if (rest == 0) return kMatched;
  if (const auto found = known_.find({rest, points}); found != known_.end()) return found->second;
  Row row = {};
  const int bits = 6 * (rest - 1);
  for (uint32_t tail = 0; tail < 64; ++tail) {
    const uint32_t base = tail << bits;
    row[0x80 | tail] = Rest(rest - 1, Window(points, base, base | ((1u << bits) - 1), base));
  }
  return Keep(rest, points, row);
}

}  // namespace quern::grammar
