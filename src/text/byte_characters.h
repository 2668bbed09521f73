// The characters that stand for bytes in byte-level vocabularies (GPT-2's bytes_to_unicode): a byte is itself where it
// is printable in Latin-1, else the next character from U+0100 on.
//
//   " the" <-> "Ġthe"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quern::text {

void AppendByteCharacter(std::string& text, uint8_t byte);

// Characters back to bytes; what stands for no byte stays as it is.
std::string BytesOfCharacters(std::string_view text);

}  // namespace quern::text
