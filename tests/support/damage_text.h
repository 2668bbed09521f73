// Text that somebody's editor, disk or malice has changed: for tests of parsers, which refuse it and never crash.
#pragma once

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace quern::testing {

// One of the sources after one to three edits: parts go, are said again, or give way to one of the pieces.
inline std::string DamagedText(std::mt19937& random, std::span<const char* const> sources,
                               std::span<const std::string_view> pieces) {
  std::string text = sources[random() % sources.size()];
  for (int edits = 1 + random() % 3; edits > 0; --edits) {
    const size_t at = random() % (text.size() + 1), length = std::min<size_t>(random() % 8, text.size() - at);
    switch (random() % 4) {
      case 0: text.erase(at, length); break;
      case 1: text.insert(at, pieces[random() % pieces.size()]); break;
      case 2: text.replace(at, length, pieces[random() % pieces.size()]); break;
      case 3: text.insert(random() % (text.size() + 1), text.substr(at, random() % 80)); break;
    }
  }
  return text;
}

}  // namespace quern::testing
