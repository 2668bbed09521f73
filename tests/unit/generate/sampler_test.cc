// Sampling: the generator against published vectors, the choices against their definition.
#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "generate/philox.h"

namespace quern {
namespace {

TEST(Philox, MatchesTheRandom123Vectors) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(TokenSampler, GreedyTakesTheSmallestIdOfEquals) {
  TokenSampler sampler({});
  EXPECT_EQ(sampler.Next(std::vector<float>{1, 5, NAN, 5, 2}), 1);
}

TEST(TokenSampler, FrequenciesFollowTheSoftmax) {
  TokenSampler sampler({.temperature = 2, .seed = 11});
  const std::vector<float> logits = {0, 2, 4};
  const double total = 1 + std::exp(1) + std::exp(2);
  constexpr int kDraws = 20000;
  std::vector<int> counts(3);
  for (int i = 0; i < kDraws; ++i) ++counts[sampler.Next(logits)];
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(counts[i] / static_cast<double>(kDraws), std::exp(i) / total, 0.015) << "seed 11";
}

TEST(TokenSampler, TopKAndTopPCutTheTail) {
  const std::vector<float> logits = {3, 1, 3, 2, 0};
  std::set<int32_t> drawn;
  TokenSampler two({.temperature = 1, .top_k = 1, .seed = 3});
  for (int i = 0; i < 200; ++i) drawn.insert(two.Next(logits));
  EXPECT_EQ(drawn, (std::set<int32_t>{0, 2}));  // both share the best place
  drawn.clear();
  TokenSampler half({.temperature = 1, .top_p = 0.5, .seed = 3});
  for (int i = 0; i < 200; ++i) drawn.insert(half.Next(logits));
  EXPECT_EQ(drawn, (std::set<int32_t>{0, 2}));
}

TEST(TokenSampler, ASeedReproducesItsDraws) {
  const std::vector<float> logits = {0, 0, 0, 0, 0, 0, 0};
  auto draw = [&](uint64_t seed) {
    TokenSampler sampler({.temperature = 1, .seed = seed});
    std::vector<int32_t> ids;
    for (int i = 0; i < 30; ++i) ids.push_back(sampler.Next(logits));
    return ids;
  };
  EXPECT_EQ(draw(5), draw(5));
  EXPECT_NE(draw(5), draw(6));
}

}  // namespace
}  // namespace quern
