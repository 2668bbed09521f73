// Sampling: the generator against Random123's vectors; the choices against their definition, then their frequencies.
#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
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

// How often each id is drawn.
std::vector<int> Frequencies(const SampleOptions& options, const std::vector<float>& logits, int draws) {
  TokenSampler sampler(options);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) ++counts[sampler.Next(logits)];
  return counts;
}

TEST(TokenSampler, GreedyTakesTheSmallestIdOfEquals) {
  TokenSampler sampler({});
  EXPECT_EQ(sampler.Next(std::vector<float>{1, 5, NAN, 5, 2}), 1);
  EXPECT_EQ(sampler.Next(std::vector<float>{NAN, -INFINITY, -5, NAN}), 2);
  EXPECT_EQ(sampler.Next(std::vector<float>{1, INFINITY, INFINITY}), 1);
  EXPECT_EQ(sampler.draws(), 0u) << "nothing is random";
}

TEST(TokenSampler, NothingToChooseFromGivesTheFirst) {
  TokenSampler greedy({}), warm({.temperature = 1});
  EXPECT_EQ(greedy.Next(std::vector<float>{NAN, -INFINITY}), 0);
  EXPECT_EQ(warm.Next(std::vector<float>{NAN, -INFINITY}), 0);
}

TEST(TokenSampler, OptionsAreChecked) {
  EXPECT_TRUE(CheckSampleOptions({}).ok());
  EXPECT_EQ(CheckSampleOptions({.temperature = -1}).message(), "a temperature of -1 is not 0 or more");
  EXPECT_EQ(CheckSampleOptions({.temperature = NAN}).message(), "a temperature of nan is not 0 or more");
  EXPECT_EQ(CheckSampleOptions({.top_k = -3}).message(), "top_k -3 is negative");
  EXPECT_EQ(CheckSampleOptions({.top_p = 0}).message(), "top_p 0 is not in (0, 1]");
}

TEST(TokenSampler, FrequenciesFollowTheSoftmax) {
  const std::vector<float> logits = {0.3f, -1, 2, 1.1f, -INFINITY};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    constexpr int kDraws = 20000;
    const std::vector<int> counts = Frequencies({.temperature = temperature, .seed = 11}, logits, kDraws);
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double p = std::exp(logits[i] / temperature) / total;
      EXPECT_NEAR(counts[i], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)) + 1e-9)
          << "id " << i << " at " << temperature << ", seed 11";
    }
  }
}

TEST(TokenSampler, TopKKeepsEqualsOfTheKth) {
  const std::vector<int> counts = Frequencies({.temperature = 1, .top_k = 2, .seed = 1}, {1, 2, 1.5, 1.5, 0}, 2000);
  EXPECT_EQ(counts[0], 0);
  EXPECT_GT(counts[1], 0);
  EXPECT_GT(counts[2], 0);
  EXPECT_GT(counts[3], 0);
  EXPECT_EQ(counts[4], 0);
}

TEST(TokenSampler, TopPKeepsTheFewestThatReachIt) {
  // Probabilities 0.125, 0.5, 0.25, 0.125.
  const float ln2 = std::log(2.0f);
  const std::vector<float> logits = {0, 2 * ln2, ln2, 0};
  std::vector<int> counts = Frequencies({.temperature = 1, .top_p = 0.7, .seed = 2}, logits, 3000);
  EXPECT_EQ(counts[0], 0);
  EXPECT_EQ(counts[3], 0);
  EXPECT_NEAR(counts[1], 2000, 130) << "renormalised to 2/3 and 1/3, seed 2";
  // Of the two equals the smaller id is kept.
  counts = Frequencies({.temperature = 1, .top_p = 0.8, .seed = 3}, logits, 3000);
  EXPECT_GT(counts[0], 0);
  EXPECT_EQ(counts[3], 0);
  // What reaches it exactly is enough.
  EXPECT_EQ(Frequencies({.temperature = 1, .top_p = 0.5, .seed = 5}, std::vector<float>{1, 1}, 100)[0], 100);
  // A top_p below the largest probability still leaves one.
  EXPECT_EQ(Frequencies({.temperature = 1, .top_p = 1e-9, .seed = 4}, logits, 100)[1], 100);
}

TEST(TokenSampler, InfiniteLogitsShareEverything) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<int> counts = Frequencies({.temperature = 1, .seed = 12}, {5, inf, inf}, 1000);
  EXPECT_EQ(counts[0], 0);
  EXPECT_NEAR(counts[1], 500, 80) << "seed 12";
}

TEST(TokenSampler, ASeedReproducesARunAndDrawsCarryOn) {
  const std::vector<float> flat(97, 0.0f);
  auto draw = [&](uint64_t seed) {
    TokenSampler sampler({.temperature = 1, .seed = seed});
    std::vector<int32_t> ids;
    for (int i = 0; i < 30; ++i) ids.push_back(sampler.Next(flat));
    EXPECT_EQ(sampler.draws(), 30u);
    return ids;
  };
  EXPECT_EQ(draw(5), draw(5));
  EXPECT_NE(draw(5), draw(6));
  const std::vector<int32_t> ids = draw(5);
  EXPECT_GT(std::set<int32_t>(ids.begin(), ids.end()).size(), 15u) << "draws differ";
  TokenSampler later({.temperature = 1, .seed = 5});
  later.set_draws(13);
  EXPECT_EQ(later.Next(flat), ids[13]);
}

}  // namespace
}  // namespace quern
