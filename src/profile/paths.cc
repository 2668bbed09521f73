// Label paths of blocks, and how repeated ones are told apart from their numbers.
#include <algorithm>
#include <cctype>

#include "profile/profile.h"

namespace quern::profile {

std::string MergedPath(std::string_view path) {
  std::string merged;
  for (size_t i = 0; i < path.size();) {
    // ".12" at the end of a component
    size_t end = i + 1;
    while (end < path.size() && std::isdigit(static_cast<unsigned char>(path[end]))) ++end;
    const bool whole = end == path.size() || path[end] == '/' || path[end] == ':';
    if (path[i] == '.' && end > i + 1 && whole) {
      merged += ".*";
      i = end;
    } else {
      merged += path[i++];
    }
  }
  return merged;
}

std::string BlockOf(std::string_view label) {
  std::string_view path = label.substr(0, label.find(':'));
  const size_t first = path.find('/');
  if (first != std::string_view::npos) path = path.substr(0, path.find('/', first + 1));
  return std::string(path);
}

}  // namespace quern::profile
