// The sampler in C against the library's, draw by draw.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "generate/sampler.h"
#include "quern/kit.h"

namespace quern {
namespace {

// The same numbers for both.
quern_sampling Plain(const SamplingOptions& o) {
  quern_sampling c = {};
  c.temperature = o.temperature;
  c.top_k = o.top_k;
  c.top_p = o.top_p;
  c.min_p = o.min_p;
  c.typical_p = o.typical_p;
  c.repeat_penalty = o.repeat_penalty;
  c.frequency_penalty = o.frequency_penalty;
  c.presence_penalty = o.presence_penalty;
  c.penalty_last = o.penalty_last;
  c.seed = o.seed;
  return c;
}

TEST(KitSampler, DrawsLikeTheLibrary) {
  std::mt19937 random(5);
  const SamplingOptions rows[] = {
      {},
      {.temperature = 0.7, .seed = 3},
      {.temperature = 1.3, .top_k = 7, .seed = 4},
      {.temperature = 1, .top_p = 0.6, .seed = uint64_t{1} << 40},
      {.temperature = 1, .seed = 6, .min_p = 0.2},
      {.temperature = 1, .seed = 7, .typical_p = 0.4},
      {.temperature = 1e-9, .seed = 8},
      {.temperature = 2, .top_k = 11, .top_p = 0.9, .seed = 9, .min_p = 0.05, .typical_p = 0.8, .repeat_penalty = 1.4},
      {.repeat_penalty = 1.9, .frequency_penalty = 0.3, .presence_penalty = 0.7, .penalty_last = 5},
      {.temperature = 0.9, .seed = 1, .frequency_penalty = 0.5, .penalty_last = -1},
      {.temperature = 1, .top_k = 1, .seed = 2},
  };
  for (const SamplingOptions& options : rows) {
    for (const int32_t size : {1, 2, 31, 997}) {
      SCOPED_TRACE(testing::Message() << "row " << &options - rows << ", " << size << " logits");
      const quern_sampling sampling = Plain(options);
      quern_sampler* const c = quern_sampler_start(&sampling, size);
      ASSERT_NE(c, nullptr);
      TokenSampler library(options);
      for (int draw = 0; draw < 120; ++draw) {
        std::vector<float> logits(static_cast<size_t>(size));
        for (float& logit : logits) {
          const uint32_t kind = random() % 40;
          // Few distinct values, so that there are equals; and what is no number.
          logit = kind == 0   ? NAN
                  : kind == 1 ? -INFINITY
                              : static_cast<float>(static_cast<int>(random() % 64) - 32) / 8;
          if (draw % 17 == 3 && kind == 2) logit = INFINITY;
        }
        if (draw == 50) {
          const std::vector<int32_t> ids = {0, 1, 1, size - 1};
          library.Observe(ids);
          quern_sampler_observe(c, ids.data(), 4);
        }
        if (draw == 90) {
          library.Forget();
          quern_sampler_forget(c);
        }
        ASSERT_EQ(quern_sampler_next(c, logits.data()), library.Next(logits)) << "draw " << draw;
      }
      quern_sampler_stop(c);
    }
  }
}

TEST(KitSampler, ZerosLeaveEveryStepOut) {
  const quern_sampling zeros = {};
  quern_sampler* const c = quern_sampler_start(&zeros, 3);
  ASSERT_NE(c, nullptr);
  const float logits[] = {1, 5, 5};
  EXPECT_EQ(quern_sampler_next(c, logits), 1);
  quern_sampler_stop(c);
}

TEST(KitSampler, RefusesWhatIsOutOfRange) {
  const auto refused = [](void (*change)(quern_sampling&)) {
    quern_sampling sampling = {};
    change(sampling);
    quern_sampler* const made = quern_sampler_start(&sampling, 3);
    quern_sampler_stop(made);
    return made == nullptr;
  };
  EXPECT_FALSE(refused([](quern_sampling&) {}));
  EXPECT_TRUE(refused([](quern_sampling& s) { s.temperature = -1; }));
  EXPECT_TRUE(refused([](quern_sampling& s) { s.temperature = NAN; }));
  EXPECT_TRUE(refused([](quern_sampling& s) { s.temperature = INFINITY; }));
  EXPECT_TRUE(refused([](quern_sampling& s) { s.top_k = -1; }));
  EXPECT_TRUE(refused([](quern_sampling& s) { s.top_p = 1.5; }));
  EXPECT_TRUE(refused([](quern_sampling& s) { s.min_p = -0.1; }));
  EXPECT_TRUE(refused([](quern_sampling& s) { s.typical_p = NAN; }));
  EXPECT_TRUE(refused([](quern_sampling& s) { s.repeat_penalty = -1; }));
  EXPECT_TRUE(refused([](quern_sampling& s) { s.frequency_penalty = INFINITY; }));
  EXPECT_TRUE(refused([](quern_sampling& s) { s.penalty_last = -2; }));
  const quern_sampling fine = {};
  EXPECT_EQ(quern_sampler_start(nullptr, 3), nullptr);
  EXPECT_EQ(quern_sampler_start(&fine, 0), nullptr);
  EXPECT_EQ(quern_sampler_next(nullptr, nullptr), -1);
  quern_sampler_observe(nullptr, nullptr, 0);
  quern_sampler_forget(nullptr);
}

}  // namespace
}  // namespace quern
