// Options::invariant: a text has the logits that it has, to the bit, however it is cut into steps, as long as prompts
// stay prompts (steps of more than 8 tokens) and what follows them comes by 1 to 8.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "quern/quern.h"

namespace quern {
namespace {

constexpr int64_t kPrompt = 270, kText = 310;  // more than one chunk of a prompt, by more than 8
constexpr uint32_t kSeed = 19;

struct Cut {
  // Lengths of the steps, repeated as often as needed; of the prompt they come to its length, 9 or more each.
  std::vector<int64_t> prompt, rest;
};

class Invariant : public testing::TestWithParam<const char*> {};

// Logits after each token of the text.
std::vector<float> Logits(const std::string& model, const Options& options, const std::vector<int32_t>& text,
                          const Cut& cut) {
  Result<Session> session = Session::Open(model, options);
  EXPECT_TRUE(session.ok()) << session.error();
  if (!session.ok()) return {};
  std::vector<float> logits;
  size_t step = 0;
  for (int64_t at = 0; at < kText; ++step) {
    const bool prompt = at < kPrompt;
    const std::vector<int64_t>& lengths = prompt ? cut.prompt : cut.rest;
    const int64_t count = std::min(lengths[step % lengths.size()], (prompt ? kPrompt : kText) - at);
    auto rows = session->StepAll(std::span(text).subspan(at, count));
    EXPECT_TRUE(rows.ok()) << rows.error();
    if (!rows.ok()) return {};
    logits.insert(logits.end(), rows->begin(), rows->end());
    at += count;
  }
  return logits;
}

TEST_P(Invariant, BitsAreTheTextsOwn) {
  const std::string model = std::string(QUERN_SOURCE_DIR) + "/" + GetParam();
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "no " << model;
  Options options = {.threads = 1, .invariant = true, .context = 320};
  int64_t vocabulary = 0;
  {
    Result<Session> session = Session::Open(model, options);
    ASSERT_TRUE(session.ok()) << session.error();
    vocabulary = session->vocabulary();
  }
  std::mt19937 random(kSeed);
  std::vector<int32_t> text(kText);
  for (int32_t& id : text) id = static_cast<int32_t>(random() % vocabulary);

  const std::vector<float> expected = Logits(model, options, text, {{kPrompt}, {1}});
  ASSERT_EQ(static_cast<int64_t>(expected.size()), kText * vocabulary);
  const Cut cuts[] = {
      {{256, 14}, {2}}, {{9}, {8}}, {{30, 47, 13}, {1, 8, 3, 2}}, {{261, 9}, {7, 1}}, {{100, 170}, {5, 4, 6}}};
  for (const Cut& cut : cuts) {
    for (const int threads : {1, 2}) {
      options.threads = threads;
      const std::vector<float> got = Logits(model, options, text, cut);
      ASSERT_EQ(got.size(), expected.size());
      for (int64_t row = 0; row < kText; ++row) {
        ASSERT_EQ(std::memcmp(&got[row * vocabulary], &expected[row * vocabulary], vocabulary * sizeof(float)), 0)
            << "seed " << kSeed << ": the logits after token " << row << " of the text cut by " << cut.prompt[0]
            << " and " << cut.rest[0] << ", on " << threads << " threads";
      }
    }
  }
}

// The logits of a step's last token alone are those that it has among all.
TEST_P(Invariant, LastRowAlone) {
  const std::string model = std::string(QUERN_SOURCE_DIR) + "/" + GetParam();
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "no " << model;
  const Options options = {.threads = 2, .invariant = true, .context = 320};
  std::mt19937 random(kSeed);
  std::vector<int32_t> text(kText);
  for (int32_t& id : text) id = static_cast<int32_t>(random() % 256);
  // 262 leaves 6 tokens beside a chunk of 256.
  for (const int64_t count : {1, 2, 8, 9, 256, 262, 300}) {
    Result<Session> one = Session::Open(model, options), all = Session::Open(model, options);
    ASSERT_TRUE(one.ok() && all.ok());
    auto last = one->Step(std::span(text).first(count)), rows = all->StepAll(std::span(text).first(count));
    ASSERT_TRUE(last.ok() && rows.ok());
    ASSERT_EQ(std::memcmp(last->data(), rows->data() + rows->size() - last->size(), last->size() * sizeof(float)), 0)
        << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Invariant,
                         testing::Values("models/addition.gguf",
                                         "../shared/models/gguf/stories260K-wide256-Q4_K_M.gguf",
                                         "../shared/models/gguf/stories260K-wide256-F32.gguf"));

}  // namespace
}  // namespace quern
