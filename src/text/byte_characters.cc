#include "text/byte_characters.h"

#include <algorithm>
#include <array>

namespace quern::text {
namespace {

constexpr std::array<uint16_t, 256> ByteCharacters() {
  std::array<uint16_t, 256> result{};
  uint16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    result[byte] = printable ? static_cast<uint16_t>(byte) : next++;
  }
  return result;
}
constexpr std::array<uint16_t, 256> kCharacters = ByteCharacters();

}  // namespace

void AppendByteCharacter(std::string& text, uint8_t byte) {
  const uint16_t character = kCharacters[byte];
  if (character >= 0x80) {
    text += static_cast<char>(0xc0 | character >> 6);
    text += static_cast<char>(0x80 | (character & 0x3f));
  } else {
    text += static_cast<char>(character);
  }
}

std::string BytesOfCharacters(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto lead = static_cast<uint8_t>(text[at]);
    const bool pair = (lead & 0xe0) == 0xc0 && at + 1 < text.size();
    const int character = pair ? (lead & 0x1f) << 6 | (static_cast<uint8_t>(text[at + 1]) & 0x3f) : lead;
    const auto found = std::find(kCharacters.begin(), kCharacters.end(), character);
    if ((lead < 0x80 || pair) && found != kCharacters.end())
      bytes += static_cast<char>(found - kCharacters.begin());
    else
      bytes += text.substr(at, pair ? 2 : 1);
    at += pair;
  }
  return bytes;
}

}  // namespace quern::text
