// Stop strings in parts of a text, against a search of the whole.
#include "generate/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace quern {
namespace {

TEST(StopStrings, HoldsBackAPossibleStop) {
  StopStrings stops({"</end>", ""});
  EXPECT_EQ(stops.Add("a<"), "a");
  EXPECT_EQ(stops.Add("/"), "");
  EXPECT_EQ(stops.Add("b</en"), "</b");
  EXPECT_FALSE(stops.stopped());
  EXPECT_EQ(stops.Add("d>y"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.Add("z"), "");
  EXPECT_EQ(stops.Flush(), "");
  StopStrings open({"abc"});
  EXPECT_EQ(open.Add("xab"), "x");
  EXPECT_EQ(open.Flush(), "ab");
}

TEST(StopStrings, PartsMakeNoDifference) {
  std::mt19937 random(2);
  const auto letters = [&](size_t most) {
    std::string text;
    for (size_t i = random() % (most + 1); i > 0; --i) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 20000; ++round) {
    const std::vector<std::string> stops = {letters(4), letters(3), letters(5)};
    const std::string text = letters(12);
    // By definition: the first place where some stop ends, and the longest that does.
    std::string want = text;
    bool found = false;
    for (size_t end = 1; end <= text.size() && !found; ++end) {
      size_t longest = 0;
      for (const std::string& stop : stops) {
        if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
      }
      found = longest > 0;
      if (found) want = text.substr(0, end - longest);
    }
    StopStrings matcher(stops);
    std::string got;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + random() % 4;
      got += matcher.Add(std::string_view(text).substr(at, length));
      at += length;
    }
    got += matcher.Flush();
    ASSERT_EQ(got, want) << "round " << round << " of seed 2";
    ASSERT_EQ(matcher.stopped(), found);
  }
}

}  // namespace
}  // namespace quern
