// MeasurePerplexity beside the logits of a session. ctest `perplexity` holds it to llama.cpp.
#include "quern/perplexity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

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
