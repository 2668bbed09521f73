// Which of two lists' texts are each other's, for those that show what differs.
#pragma once

#include <string>
#include <vector>

namespace quern {

// For each of `a` the one of `b` that it is matched with, or -1: a longest common subsequence. What both begin and end
// with is matched first; past some thousand edits between, all of that counts as another.
std::vector<int> Match(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace quern
