// Which chunks of a grid are run where all of them would take too long.
#include "kir/random_buffer.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace quern::kir {
namespace {

TEST(RandomChunks, AreChunksOfTheGridEachOnce) {
  std::mt19937_64 random(1);
  for (int64_t chunks = 0; chunks < 12; ++chunks) {
    for (int64_t most = 1; most < 14; ++most) {
      std::vector<int64_t> taken;
      for (const auto& [begin, end] : RandomChunks(chunks, most, random)) {
        for (int64_t c = begin; c < end; ++c) taken.push_back(c);
      }
      std::sort(taken.begin(), taken.end());
      EXPECT_EQ(std::adjacent_find(taken.begin(), taken.end()), taken.end()) << chunks << " " << most;
      if (chunks > 0) {
        ASSERT_FALSE(taken.empty()) << chunks << " " << most;
        EXPECT_GE(taken.front(), 0);
        EXPECT_LT(taken.back(), chunks) << chunks << " " << most;
      }
      EXPECT_LE(static_cast<int64_t>(taken.size()), most) << chunks << " " << most;
      if (chunks <= most) EXPECT_EQ(static_cast<int64_t>(taken.size()), chunks);
    }
  }
}

}  // namespace
}  // namespace quern::kir
