#include "base/nearest.h"

#include <algorithm>
#include <cctype>

namespace quern {
namespace {

constexpr size_t kLongest = 64;  // of names that are compared: what is longer was no slip of the finger

bool SameLetter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Edits between the two, swaps of neighbours counted as one (optimal string alignment).
size_t Edits(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = SameLetter(a[i - 1], b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && SameLetter(a[i - 1], b[j - 2]) && SameLetter(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

}  // namespace

std::string Nearest(std::string_view name, const std::vector<std::string_view>& known) {
  if (name.size() > kLongest) return "";
  std::string_view nearest;
  size_t fewest = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    if (candidate.empty() || candidate.size() > kLongest) continue;
    const size_t edits = Edits(name, candidate);
    // Names of one or two letters are a few edits from anything.
    if (edits >= fewest || edits >= std::max(name.size(), candidate.size())) continue;
    fewest = edits;
    nearest = candidate;
  }
  return std::string(nearest);
}

}  // namespace quern
