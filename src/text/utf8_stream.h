// Bytes that come in parts, as whole characters of valid UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace quern::text {

class Utf8Stream {
 public:
  // What is certain after `bytes`: all but a sequence at the end that more bytes may complete. Each longest part of a
  // sequence that none can complete becomes U+FFFD, as the Unicode Standard (chapter 3, "U+FFFD Substitution of Maximal
  // Subparts") recommends.
  std::string Add(std::string_view bytes);
  // At the end: U+FFFD for a sequence that was not completed, else nothing.
  std::string Flush();

 private:
  std::string held_;  // the beginning of a valid sequence, at most 3 bytes
};

}  // namespace quern::text
