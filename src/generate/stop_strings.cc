#include "generate/stop_strings.h"

#include <algorithm>
#include <utility>

namespace quern {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
  std::sort(stops_.begin(), stops_.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string StopStrings::Add(std::string_view text) {
  std::string certain;
  for (const char byte : text) {
    if (stopped_) break;
    held_ += byte;
    for (const std::string& stop : stops_) {
      if (!held_.ends_with(stop)) continue;
      certain.append(held_, 0, held_.size() - stop.size());
      held_.clear();
      stopped_ = true;
      break;
    }
    // Only as much is kept as some stop begins with.
    size_t keep = 0;
    for (const std::string& stop : stops_) {
      size_t length = std::min(held_.size(), stop.size() - 1);
      while (length > keep && std::string_view(held_).substr(held_.size() - length) != stop.substr(0, length)) --length;
      keep = std::max(keep, length);
    }
    certain.append(held_, 0, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
  }
  return certain;
}

std::string StopStrings::Flush() { return std::exchange(held_, ""); }

}  // namespace quern
