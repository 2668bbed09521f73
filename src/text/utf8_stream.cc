#include "text/utf8_stream.h"

#include <cstdint>

namespace quern::text {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Rows of the standard's table 3-7: of the sequences that begin with these bytes, the length, and what the second byte
// may be. Those after it are 80..BF.
struct Lead {
  uint8_t first, last, length, low, high;
};
constexpr Lead kLeads[] = {
    {0x00, 0x7f, 1, 0, 0},       {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
    {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

const Lead* FindLead(uint8_t byte) {
  for (const Lead& lead : kLeads) {
    if (byte >= lead.first && byte <= lead.last) return &lead;
  }
  return nullptr;
}

}  // namespace

std::string Utf8Stream::Add(std::string_view bytes) {
  const std::string text = held_ + std::string(bytes);
  held_.clear();
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const Lead* const lead = FindLead(static_cast<uint8_t>(text[at]));
    size_t length = 1;  // of the longest part that is right
    for (; lead != nullptr && length < lead->length && at + length < text.size(); ++length) {
      const auto byte = static_cast<uint8_t>(text[at + length]);
      if (byte < (length == 1 ? lead->low : 0x80) || byte > (length == 1 ? lead->high : 0xbf)) break;
    }
    if (lead != nullptr && length == lead->length) {
      result.append(text, at, length);
    } else if (lead != nullptr && at + length == text.size()) {
      held_ = text.substr(at);
    } else {
      result += kReplacement;
    }
    at += length;
  }
  return result;
}

std::string Utf8Stream::Flush() {
  if (held_.empty()) return "";
  held_.clear();
  return std::string(kReplacement);
}

}  // namespace quern::text
