// Finds the first of some strings in a text that comes in parts, and holds back what may become one.
//
//   stops {"</end>"}: "a<" -> "a", "/" -> "", "b" -> "</b"        ... "x</en" -> "x", "d>y" -> "", stopped
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern {

// The text that comes out, and whether it stopped, do not depend on how the text was cut into parts: the stop string
// that ends first counts, and of those that end there the longest.
class StopStrings {
 public:
  // Empty ones are left out.
  explicit StopStrings(std::vector<std::string> stops);
  // What is certain after `text`; empty once stopped. Time: the length of `text`, times that of all stops.
  std::string Add(std::string_view text);
  // At the end: what was held back.
  std::string Flush();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;  // longest first
  std::string held_;
  bool stopped_ = false;
};

}  // namespace quern
