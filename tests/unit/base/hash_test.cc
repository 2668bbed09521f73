// The stable hash: fixed values (a cache on disk depends on them), sensitivity, text.
#include "base/hash.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace quern {
namespace {

// XXH3, 128 bits, seed 0: the published value for the empty input.
TEST(HashTest, IsXxh3) { EXPECT_EQ(HashBytes("").ToHex(), "99aa06d3014798d86001c324468d497f"); }

TEST(HashTest, EveryByteCounts) {
  std::set<Hash128> seen;
  std::string text(300, 'q');
  seen.insert(HashBytes(text));
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] ^= 1;
    EXPECT_TRUE(seen.insert(HashBytes(text)).second) << i;
    text[i] ^= 1;
    EXPECT_TRUE(seen.insert(HashBytes(std::string_view(text).substr(0, i))).second) << i;
  }
  EXPECT_EQ(HashBytes(text), HashBytes(std::string(300, 'q')));
}

TEST(HashTest, HexHasAllDigits) {
  EXPECT_EQ((Hash128{1, 0xab}).ToHex(), "000000000000000100000000000000ab");
  EXPECT_EQ((Hash128{~uint64_t{0}, 0}).ToHex(), "ffffffffffffffff0000000000000000");
}

}  // namespace
}  // namespace quern
