#include "text/normaliser.h"

#include <cstring>

namespace quern::text {

StatusOr<Normaliser> Normaliser::Of(std::span<const uint8_t> bytes) {
  Normaliser made;
  if (bytes.empty()) return made;
  uint32_t size = 0;
  if (bytes.size() >= sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
  if (bytes.size() < sizeof size || size > bytes.size() - sizeof size || size % 4 != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the charsmap of the tokenizer has %u bytes, and says that %u are its array", bytes.size(), size));
  }
  made.words_ = bytes.subspan(sizeof size, size);
  const auto rest = bytes.subspan(sizeof size + size);
  made.replacements_ = {reinterpret_cast<const char*>(rest.data()), rest.size()};
  if (!made.replacements_.empty() && made.replacements_.back() != '\0')
    return absl::InvalidArgumentError("the last replacement of the tokenizer's charsmap has no end");
  return made;
}

uint32_t Normaliser::WordAt(size_t index) const {
  uint32_t word = 0;
  if (index < words_.size() / sizeof word) std::memcpy(&word, words_.data() + index * sizeof word, sizeof word);
  return word;
}

Normaliser::Replaced Normaliser::At(std::string_view text) const {
  const auto children = [](uint32_t word) { return (word >> 10) << ((word & 1u << 9) >> 6); };
  Replaced longest;
  if (words_.empty()) return longest;
  uint32_t node = children(WordAt(0));
  for (size_t at = 0; at < text.size() && text[at] != '\0'; ++at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    node ^= byte;
    const uint32_t word = WordAt(node);
    if ((word & (1u << 31 | 0xff)) != byte) break;
    node ^= children(word);
    if ((word >> 8 & 1) == 0) continue;
    const size_t begin = WordAt(node) & ~(1u << 31);
    if (begin >= replacements_.size()) continue;
    longest = {at + 1, replacements_.substr(begin, replacements_.find('\0', begin) - begin)};
  }
  return longest;
}

}  // namespace quern::text
