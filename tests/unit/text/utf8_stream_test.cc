// Characters that arrive in parts, against ICU on the whole text.
#include "text/utf8_stream.h"

#include <gtest/gtest.h>
#include <unicode/utf8.h>

#include <random>

namespace quern::text {
namespace {

std::string Whole(const std::string& bytes) {
  std::string result;
  const auto size = static_cast<int32_t>(bytes.size());
  for (int32_t at = 0; at < size;) {
    const int32_t begin = at;
    UChar32 c;
    U8_NEXT(reinterpret_cast<const uint8_t*>(bytes.data()), at, size, c);
    result += c < 0 ? "\xef\xbf\xbd" : bytes.substr(begin, at - begin);
  }
  return result;
}

TEST(Utf8Stream, HoldsBackWhatIsNotWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Add("a\xf0\x9f"), "a");
  EXPECT_EQ(stream.Add("\xa6"), "");
  EXPECT_EQ(stream.Add("\x99"
                       "b"),
            "\xf0\x9f\xa6\x99"
            "b");
  EXPECT_EQ(stream.Add("\xe2\x82"), "");
  EXPECT_EQ(stream.Add("x"), "\xef\xbf\xbdx");
  EXPECT_EQ(stream.Add("\xc3"), "");
  EXPECT_EQ(stream.Flush(), "\xef\xbf\xbd");
  EXPECT_EQ(stream.Flush(), "");
}

TEST(Utf8Stream, PartsMakeNoDifference) {
  constexpr unsigned char kBytes[] = {0,    'a',  0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2,
                                      0xdf, 0xe0, 0xe1, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t i = random() % 9; i > 0; --i) text += static_cast<char>(kBytes[random() % std::size(kBytes)]);
    Utf8Stream stream;
    std::string got;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + random() % 3;
      const std::string part = stream.Add(std::string_view(text).substr(at, length));
      EXPECT_EQ(part, Whole(part)) << "what comes out is valid";
      got += part;
      at += length;
    }
    got += stream.Flush();
    ASSERT_EQ(got, Whole(text)) << "round " << round << " of seed 1";
  }
}

}  // namespace
}  // namespace quern::text
