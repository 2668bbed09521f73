// Sampling: the generator against Random123's vectors; the choices against their definition, then their frequencies.
#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
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
std::vector<int> Frequencies(const SamplingOptions& options, const std::vector<float>& logits, int draws) {
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
  EXPECT_TRUE(CheckSamplingOptions({}).ok());
  EXPECT_EQ(CheckSamplingOptions({.temperature = -1}).message(), "temperature -1 is not a number from 0 on");
  EXPECT_EQ(CheckSamplingOptions({.temperature = NAN}).message(), "temperature nan is not a number from 0 on");
  EXPECT_EQ(CheckSamplingOptions({.top_k = -3}).message(), "top_k -3 is not a whole number from 0 on");
  EXPECT_EQ(CheckSamplingOptions({.top_p = 0}).message(), "top_p 0 is not a number in (0, 1]");
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

// Every step by its definition, on probabilities alone, with nothing that the stages share.
std::map<int32_t, double> ByDefinition(const SamplingOptions& o, const std::vector<int32_t>& history,
                                       const std::vector<float>& row) {
  std::map<int32_t, double> z;
  for (size_t i = 0; i < row.size(); ++i) z[static_cast<int32_t>(i)] = row[i];
  for (const auto& [id, bias] : o.logit_bias) z[id] = static_cast<float>(z[id] + bias);
  for (auto& [id, logit] : z) {
    int count = 0;
    for (size_t i = 0; i < history.size(); ++i)
      count += history[i] == id && (o.penalty_last < 0 || history.size() - i <= static_cast<size_t>(o.penalty_last));
    if (count == 0) continue;
    logit = logit > 0 ? logit / o.repeat_penalty : logit * o.repeat_penalty;
    logit = static_cast<float>(logit - count * o.frequency_penalty - o.presence_penalty);
  }
  if (o.dry_multiplier > 0) {
    const size_t last = o.dry_penalty_last < 0 ? history.size() : static_cast<size_t>(o.dry_penalty_last);
    const std::vector<int32_t> text(history.end() - static_cast<ptrdiff_t>(std::min(last, history.size())),
                                    history.end());
    for (auto& [id, logit] : z) {
      int longest = 0;
      for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != id) continue;
        int n = 0;
        while (n < static_cast<int>(i) && text[i - 1 - n] == text[text.size() - 1 - n]) ++n;
        longest = std::max(longest, n);
      }
      if (longest >= o.dry_allowed_length)
        logit = static_cast<float>(logit - o.dry_multiplier * std::pow(o.dry_base, longest - o.dry_allowed_length));
    }
  }
  if (o.top_n_sigma > 0) {
    double largest = -INFINITY, mean = 0, variance = 0;
    for (const auto& [id, logit] : z) mean += logit / static_cast<double>(z.size());
    for (const auto& [id, logit] : z) {
      variance += std::pow(logit - mean, 2) / static_cast<double>(z.size());
      largest = std::max(largest, logit);
    }
    std::erase_if(z, [&](const auto& e) { return e.second < largest - o.top_n_sigma * std::sqrt(variance); });
  }
  if (o.top_k > 0) {
    std::map<int32_t, double> kept;
    for (const auto& [id, logit] : z) {
      int above = 0;
      for (const auto& [other, value] : z) above += value > logit;
      if (above < o.top_k) kept[id] = logit;
    }
    z = kept;
  }
  const auto normalised = [](std::map<int32_t, double> p) {
    double total = 0;
    for (const auto& [id, value] : p) total += value;
    for (auto& [id, value] : p) value /= total;
    return p;
  };
  std::map<int32_t, double> p;
  const auto softmax = [&](double temperature) {
    for (const auto& [id, logit] : z) p[id] = std::exp(logit / temperature);
    p = normalised(p);
  };
  softmax(1);
  double temperature = o.temperature;
  if (o.dynatemp_range > 0 && p.size() > 1) {
    double entropy = 0;
    for (const auto& [id, value] : p) entropy -= value * std::log(value) / std::log(static_cast<double>(p.size()));
    const double low = std::max(0.0, temperature - o.dynatemp_range), high = temperature + o.dynatemp_range;
    temperature = low + (high - low) * std::pow(entropy, o.dynatemp_exponent);
  }
  softmax(temperature);
  // The fewest of an order that reach a sum.
  const auto fewest = [&](std::vector<std::pair<double, int32_t>> order, double sum) {
    std::sort(order.begin(), order.end());
    std::map<int32_t, double> kept;
    double reached = 0;
    for (const auto& [key, id] : order) {
      if (!kept.empty() && reached >= sum - 1e-12) break;
      kept[id] = p[id];
      reached += p[id];
    }
    return normalised(kept);
  };
  if (o.typical_p < 1) {
    double entropy = 0;
    for (const auto& [id, value] : p) entropy -= value * std::log(value);
    std::vector<std::pair<double, int32_t>> order;
    for (const auto& [id, value] : p) order.emplace_back(std::abs(-std::log(value) - entropy), id);
    p = fewest(order, o.typical_p);
  }
  if (o.top_p < 1) {
    std::vector<std::pair<double, int32_t>> order;
    for (const auto& [id, value] : p) order.emplace_back(-value, id);
    p = fewest(order, o.top_p);
  }
  double largest = 0;
  for (const auto& [id, value] : p) largest = std::max(largest, value);
  std::erase_if(p, [&](const auto& entry) { return entry.second < o.min_p * largest; });
  p = normalised(p);
  if (o.xtc_probability == 1) {
    double last = 2;
    for (const auto& [id, value] : p) last = value >= o.xtc_threshold ? std::min(last, value) : last;
    if (last <= 1) std::erase_if(p, [&](const auto& entry) { return entry.second > last; });
    p = normalised(p);
  }
  if (o.mirostat_tau > 0) {  // as at the begin of a text
    const auto likeliest = *std::ranges::max_element(p, {}, [](const auto& entry) { return entry.second; });
    std::erase_if(p, [&](const auto& entry) { return -std::log2(entry.second) > 2 * o.mirostat_tau; });
    if (p.empty()) p.insert(likeliest);
  }
  return normalised(p);
}

TEST(TokenSampler, EveryStageIsItsDefinition) {
  std::mt19937 random(4);
  const auto uniform = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  for (int round = 0; round < 3000; ++round) {
    std::vector<float> row(1 + random() % 23);
    // Distinct logits: where floats round to equals, which of them stays is another test's.
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<float>(8 * uniform() - 4) + static_cast<float>(i) * 1e-4f;
    SamplingOptions options = {.temperature = 0.3 + 2 * uniform()};
    const auto maybe = [&] { return random() % 3 == 0; };
    if (maybe()) options.top_k = static_cast<int>(1 + random() % 12);
    if (maybe()) options.top_p = 0.05 + 0.9 * uniform();
    if (maybe()) options.min_p = uniform();
    if (maybe()) options.mirostat_tau = 2 * uniform();
    if (maybe()) options.typical_p = 0.05 + 0.9 * uniform();
    if (maybe()) options.repeat_penalty = 0.5 + 2 * uniform();
    if (maybe()) options.frequency_penalty = 2 * uniform() - 1;
    if (maybe()) options.presence_penalty = 2 * uniform() - 1;
    if (maybe()) options.penalty_last = static_cast<int>(random() % 6) - 1;
    if (maybe()) {
      options.dry_multiplier = 2 * uniform();
      options.dry_base = 1 + uniform();
      options.dry_allowed_length = static_cast<int>(1 + random() % 3);
      options.dry_penalty_last = static_cast<int>(random() % 9) - 1;
    }
    if (maybe()) options.top_n_sigma = 0.1 + 2 * uniform();
    if (maybe()) options.dynatemp_range = uniform() * 0.9 * options.temperature;
    if (maybe()) options.dynatemp_exponent = 2 * uniform();
    if (maybe()) options.xtc_probability = 1;
    if (maybe()) options.xtc_threshold = uniform() * 0.4;
    if (maybe()) options.logit_bias = {{static_cast<int32_t>(random() % row.size()), static_cast<float>(uniform())}};
    std::vector<int32_t> history(random() % 19);
    for (int32_t& id : history) id = static_cast<int32_t>(random() % std::min<size_t>(row.size(), 3));
    ASSERT_TRUE(CheckSamplingOptions(options).ok());
    TokenSampler sampler(options);
    sampler.Observe(history);
    std::map<int32_t, double> got;
    for (const Candidate& candidate : sampler.Distribution(row)) got[candidate.id] = candidate.weight;
    const std::map<int32_t, double> want = ByDefinition(options, history, row);
    ASSERT_EQ(got.size(), want.size()) << "round " << round << " of seed 4";
    for (const auto& [id, p] : want) ASSERT_NEAR(got[id], p, 1e-9) << "token " << id << ", round " << round;
    // What is drawn is one of them.
    ASSERT_TRUE(want.contains(sampler.Next(row)));
  }
}

TEST(TokenSampler, PenaltiesLookBackOnWhatWasDrawn) {
  TokenSampler sampler({.presence_penalty = 10, .penalty_last = 2});
  const std::vector<float> row = {3, 2, 1, 0};
  std::vector<int32_t> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(sampler.Next(row));
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 1, 2, 0, 1, 2}));
  sampler.Forget();
  EXPECT_EQ(sampler.Next(row), 0);
}

// Of what tokens are drawn the surprise is tau on average, of each its own where the distribution allows it: here those
// of Zipf, of 400 tokens, whose entropy is 6.1 bits.
TEST(TokenSampler, MirostatKeepsTheSurprise) {
  std::vector<float> row(400);
  for (size_t i = 0; i < row.size(); ++i) row[i] = -std::log(static_cast<float>(i + 1));
  for (const double tau : {1.0, 3.0, 5.0}) {
    TokenSampler sampler({.temperature = 1, .seed = 12, .mirostat_tau = tau, .mirostat_eta = 0.05});
    const auto draw = [&] {
      std::map<int32_t, double> p;
      for (const Candidate& candidate : sampler.Distribution(row)) p[candidate.id] = candidate.weight;
      return -std::log2(p.at(sampler.Next(row)));
    };
    const size_t first = sampler.Distribution(row).size();
    double sum = 0;
    constexpr int kSkipped = 300, kDraws = 4000;
    for (int i = 0; i < kSkipped; ++i) draw();
    for (int i = 0; i < kDraws; ++i) sum += draw();
    EXPECT_NEAR(sum / kDraws, tau, 0.05) << "seed 12";
    sampler.Forget();
    EXPECT_EQ(sampler.Distribution(row).size(), first) << "another text begins as the first did";
  }
}

TEST(TokenSampler, XtcLeavesOutAsOftenAsAsked) {
  const std::vector<float> row = {std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  const SamplingOptions options = {.temperature = 1, .seed = 9, .xtc_probability = 0.4, .xtc_threshold = 0.25};
  TokenSampler sampler(options), again(options);
  constexpr int kDraws = 20000;
  std::vector<int> counts(row.size());
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<Candidate> from = sampler.Distribution(row);
    const int32_t id = sampler.Next(row);
    ++counts[id];
    ASSERT_EQ(again.Next(row), id) << "what it would be drawn from was asked for, and takes no draw";
    ASSERT_TRUE(std::ranges::any_of(from, [&](const Candidate& candidate) { return candidate.id == id; }));
  }
  EXPECT_EQ(sampler.draws(), 2u * kDraws) << "one is for whether the likeliest are left out";
  // The likeliest is there 6 times in 10; then 0.3, 0.15 and 0.05 share everything.
  EXPECT_NEAR(counts[0], kDraws * 0.6 * 0.5, 300) << "seed 9";
  EXPECT_NEAR(counts[1], kDraws * (0.6 * 0.3 + 0.4 * 0.6), 300) << "seed 9";
  TokenSampler without({.temperature = 1, .seed = 9, .xtc_threshold = 0.25}), plain({.temperature = 1, .seed = 9});
  for (int i = 0; i < 100; ++i) ASSERT_EQ(without.Next(row), plain.Next(row));
  EXPECT_EQ(without.draws(), 100u) << "an option that is off takes no draws";
}

TEST(TokenSampler, DryEndsARepetition) {
  const std::vector<int32_t> text = {0, 1, 2, 3, 0, 1, 2};  // 3 came then, 3 tokens after
  TokenSampler plain({}), dry({.dry_multiplier = 0.4, .dry_base = 2}), broken({.dry_multiplier = 5}, nullptr, {1});
  const std::vector<float> three = {0, 0.5, 0, 1};
  plain.Observe(text);
  dry.Observe(text);
  broken.Observe(text);
  EXPECT_EQ(plain.Next(three), 3);
  EXPECT_EQ(dry.Next(three), 1) << "3 loses 0.4 * 2^1, at temperature 0 too";
  EXPECT_EQ(broken.Next(three), 3) << "behind the breaker there is one token, and two are allowed";
  // Nothing is infinite, however long it is, and an infinite logit stays a number.
  TokenSampler huge({.dry_multiplier = 1e300, .dry_base = 1e300});
  huge.Observe(std::vector<int32_t>(200000, 1));  // a quadratic search would take many seconds
  EXPECT_EQ(huge.Next(std::vector<float>{1, INFINITY}), 1);
  EXPECT_EQ(huge.Next(std::vector<float>{1, 100}), 0);
}

TEST(TokenSampler, TopNSigmaGoesByFiniteLogits) {
  const float inf = std::numeric_limits<float>::infinity();
  // Of 0, 0, 0 and 4: mean 1, deviation 1.73.
  const auto left = [](double n, const std::vector<float>& row) {
    return TokenSampler({.temperature = 1, .top_n_sigma = n}).Distribution(row).size();
  };
  EXPECT_EQ(left(2.3, {0, 0, 0, 4}), 1u);
  EXPECT_EQ(left(2.4, {0, 0, 0, 4}), 4u);
  EXPECT_EQ(left(2.4, {-inf, NAN, 0, 0, 0, 4}), 4u);
  EXPECT_EQ(left(2.4, {0, 0, 0, 4, inf}), 1u);
  EXPECT_EQ(left(1, {inf, inf}), 2u);
}

TEST(TokenSampler, DynamicTemperatureFollowsTheEntropy) {
  // All equally likely: the greatest entropy, and the highest temperature, which makes no difference.
  const SamplingOptions options = {.temperature = 1, .dynatemp_range = 1};
  TokenSampler sampler(options);
  for (const Candidate& candidate : sampler.Distribution(std::vector<float>{2, 2, 2, 2}))
    EXPECT_NEAR(candidate.weight, 0.25, 1e-12);
  // None: as good as temperature 0.
  EXPECT_NEAR(sampler.Distribution(std::vector<float>{90, 0}).at(0).weight, 1, 1e-12);
  EXPECT_EQ(sampler.Distribution(std::vector<float>{90, NAN}).at(0).weight, 1);
}

TEST(TokenSampler, ABiasBans) {
  TokenSampler sampler({.logit_bias = {{0, -INFINITY}, {9, 5}, {2, 5}}});
  EXPECT_EQ(sampler.Next(std::vector<float>{3, 2, 1, 0}), 2) << "an id past the vocabulary is passed over";
  TokenSampler none({.logit_bias = {{0, -INFINITY}}});
  EXPECT_EQ(none.Next(std::vector<float>{3, NAN}), 0) << "one is always left";
}

TEST(TokenSampler, StagesCheckTheirOptions) {
  const auto says = [](const SamplingOptions& options) { return std::string(CheckSamplingOptions(options).message()); };
  EXPECT_EQ(says({.min_p = 1.5}), "min_p 1.5 is not a number in [0, 1]");
  EXPECT_EQ(says({.typical_p = 0}), "typical_p 0 is not a number in (0, 1]");
  EXPECT_EQ(says({.repeat_penalty = 0}), "repeat_penalty 0 is not a number above 0");
  EXPECT_EQ(says({.frequency_penalty = NAN}), "frequency_penalty nan is not a finite number");
  EXPECT_EQ(says({.penalty_last = -2}), "penalty_last -2 is not a whole number from -1 on");
  EXPECT_EQ(says({.logit_bias = {{3, INFINITY}}}), "the bias inf of token 3 is no finite number");
  EXPECT_EQ(says({.mirostat_tau = -1}), "mirostat_tau -1 is not a number from 0 on");
  EXPECT_EQ(says({.mirostat_eta = 1.5}), "mirostat_eta 1.5 is not a number in [0, 1]");
  EXPECT_EQ(says({.repeat_penalty = INFINITY}), "repeat_penalty inf is not a number above 0");
  EXPECT_EQ(says({.dry_base = 0.5}), "dry_base 0.5 is not a number from 1 on");
  EXPECT_EQ(says({.dry_allowed_length = 0}), "dry_allowed_length 0 is not a whole number from 1 on");
  EXPECT_EQ(says({.dry_breakers = {"a", ""}}), "a text of dry_breakers is empty");
  EXPECT_EQ(says({.logit_bias = {{-3, 1}}}), "a bias is on token -3, which there is not");
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
