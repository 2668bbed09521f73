// MeasurePerplexity beside the logits of a session. ctest `perplexity` holds it to llama.cpp.
#include "quern/perplexity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "quern/quantise.h"
#include "quern/tokenizer.h"

namespace quern {
namespace {

constexpr const char* kModel = QUERN_SOURCE_DIR "/models/addition.gguf";

// Sums of the kind that the model knows, on one line each.
std::string SomeText() {
  std::string text;
  for (int i = 1; i < 40; ++i) {
    const int a = i * 7 % 50, b = i * 11 % 47;
    text += std::to_string(a) + "+" + std::to_string(b) + "=" + std::to_string(a + b) + "\n";
  }
  return text;
}

TEST(Perplexity, IsOfTheLogitsOfASession) {
  constexpr int64_t kChunk = 37, kChunks = 3;
  PerplexityOptions options{.run = {.context = kChunk}, .chunks = kChunks};
  std::vector<int64_t> seen;
  options.progress = [&](const PerplexityReport& so_far, int64_t all) {
    EXPECT_EQ(all, kChunks);
    EXPECT_EQ(so_far.tokens, so_far.chunks * 18);
    seen.push_back(so_far.chunks);
  };
  const Result<PerplexityReport> report = MeasurePerplexity(kModel, SomeText(), options);
  ASSERT_TRUE(report.ok()) << report.error();
  EXPECT_THAT(seen, ::testing::ElementsAre(1, 2, 3));

  Result<Session> session = Session::Open(kModel, {.context = kChunk});
  ASSERT_TRUE(session.ok()) << session.error();
  const Result<Tokenizer> tokenizer = session->tokenizer();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error();
  std::vector<int32_t> ids = tokenizer->Encode(SomeText(), {.parse_special = false});
  ASSERT_GE(static_cast<int64_t>(ids.size()), kChunk * kChunks);
  std::vector<double> nlls;
  for (int64_t c = 0; c < kChunks; ++c) {
    if (tokenizer->Encode("")[0] == tokenizer->begin()) ids[c * kChunk] = tokenizer->begin();
    session->Reset();
    const Result<std::vector<float>> logits = session->StepAll(std::span(ids).subspan(c * kChunk, kChunk));
    ASSERT_TRUE(logits.ok()) << logits.error();
    for (int64_t i = kChunk / 2; i + 1 < kChunk; ++i) {
      const float* const row = logits->data() + i * session->vocabulary();
      double all = 0;
      for (int64_t v = 0; v < session->vocabulary(); ++v) all += std::exp(static_cast<double>(row[v]));
      nlls.push_back(std::log(all) - row[ids[c * kChunk + i + 1]]);
    }
  }
  double mean = 0, squares = 0;
  for (const double nll : nlls) mean += nll / static_cast<double>(nlls.size());
  for (const double nll : nlls) squares += (nll - mean) * (nll - mean);
  const auto n = static_cast<double>(nlls.size());
  EXPECT_EQ(report->tokens, static_cast<int64_t>(nlls.size()));
  EXPECT_NEAR(report->nll, mean, 1e-4 * mean);
  EXPECT_NEAR(report->perplexity, std::exp(report->nll), 1e-9 * report->perplexity);
  EXPECT_NEAR(report->error, std::exp(mean) * std::sqrt(squares / n / (n - 1)), 1e-3 * report->error);
}

TEST(Perplexity, DivergesFromABase) {
  constexpr int64_t kChunk = 37, kChunks = 2;
  const std::string small = ::testing::TempDir() + "quern-diverges.gguf";
  const auto quantised = Quantise(kModel, small, {.type = "Q4_0"});
  ASSERT_TRUE(quantised.ok()) << quantised.error();
  PerplexityOptions options{.run = {.context = kChunk}, .chunks = kChunks, .base = kModel};
  const Result<PerplexityReport> report = MeasurePerplexity(small, SomeText(), options);
  ASSERT_TRUE(report.ok()) << report.error();
  ASSERT_TRUE(report->divergence.has_value());

  Result<Session> model = Session::Open(small, {.context = kChunk}), base = Session::Open(kModel, {.context = kChunk});
  ASSERT_TRUE(model.ok() && base.ok());
  const Result<Tokenizer> tokenizer = base->tokenizer();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error();
  std::vector<int32_t> ids = tokenizer->Encode(SomeText(), {.parse_special = false});
  const auto chances = [](const float* row, int64_t count) {
    std::vector<double> made(row, row + count);
    double all = 0;
    for (double& v : made) all += v = std::exp(v);
    for (double& v : made) v /= all;
    return made;
  };
  double sum = 0, squares = 0, largest = 0, base_nll = 0;
  int64_t count = 0, same = 0;
  for (int64_t c = 0; c < kChunks; ++c) {
    if (tokenizer->Encode("")[0] == tokenizer->begin()) ids[c * kChunk] = tokenizer->begin();
    const std::span<const int32_t> chunk = std::span(ids).subspan(c * kChunk, kChunk);
    constexpr int64_t kFirst = kChunk / 2;
    std::vector<std::vector<float>> logits;
    for (Session* session : {&*model, &*base}) {
      session->Reset();
      ASSERT_TRUE(session->Step(chunk.first(kFirst)).ok());
      const auto stepped = session->StepAll(chunk.subspan(kFirst, kChunk - 1 - kFirst));
      ASSERT_TRUE(stepped.ok()) << stepped.error();
      logits.push_back(*stepped);
    }
    const int64_t n = base->vocabulary();
    for (int64_t i = kFirst; i + 1 < kChunk; ++i, ++count) {
      const int64_t at = (i - kFirst) * n;
      const std::vector<double> q = chances(logits[0].data() + at, n), p = chances(logits[1].data() + at, n);
      double divergence = 0;
      for (int64_t v = 0; v < n; ++v) divergence += p[v] > 0 ? p[v] * std::log(p[v] / q[v]) : 0;
      sum += divergence;
      squares += divergence * divergence;
      largest = std::max(largest, divergence);
      base_nll -= std::log(p[chunk[i + 1]]);
      same += std::ranges::max_element(q) - q.begin() == std::ranges::max_element(p) - p.begin();
    }
  }
  const auto n = static_cast<double>(count);
  const double mean = sum / n;
  EXPECT_GT(mean, 1e-6);
  EXPECT_NEAR(report->divergence->mean, mean, 1e-9 * mean);
  EXPECT_NEAR(report->divergence->largest, largest, 1e-9 * largest);
  EXPECT_NEAR(report->divergence->error, std::sqrt((squares / n - mean * mean) / (n - 1)), 1e-9 * mean);
  EXPECT_NEAR(report->divergence->base_perplexity, std::exp(base_nll / n), 1e-9 * std::exp(base_nll / n));
  EXPECT_EQ(report->divergence->same_top, static_cast<double>(same) / n);

  options.base = small;
  const Result<PerplexityReport> itself = MeasurePerplexity(small, SomeText(), options);
  ASSERT_TRUE(itself.ok()) << itself.error();
  EXPECT_EQ(itself->divergence->mean, 0);
  EXPECT_EQ(itself->divergence->same_top, 1);
  std::remove(small.c_str());
}

TEST(Perplexity, IsRefusedOfTooLittle) {
  const auto error = [](const std::string& text, int64_t context) {
    return MeasurePerplexity(kModel, text, {.run = {.context = context}}).error();
  };
  EXPECT_THAT(error("1+2=3", 0), ::testing::HasSubstr("less than a chunk of "));
  EXPECT_THAT(error(SomeText(), 3), ::testing::HasSubstr("a chunk of 3 tokens (--context) is too short: at least 4"));
}

TEST(Perplexity, CanBeCancelled) {
  CancelToken cancel;
  cancel.Cancel();
  const Result<PerplexityReport> report =
      MeasurePerplexity(kModel, SomeText(), {.run = {.cancel = &cancel, .context = 37}});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace quern
