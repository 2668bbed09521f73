// Sampler of the public interface: what it needs a tokenizer for, and which tokens end repetitions.
#include <gtest/gtest.h>

#include "quern/quern.h"

namespace quern {
namespace {

const char* const kModel = QUERN_SOURCE_DIR "/models/addition.gguf";

TEST(SamplerApi, SaysWhereATokenizerIsNeeded) {
  SamplingOptions options;
  EXPECT_FALSE(options.needs_tokenizer());
  EXPECT_TRUE(Sampler::Make(options).ok());
  options.dry_multiplier = 1;
  EXPECT_EQ(Sampler::Make(options).error(), "dry_breakers need the tokenizer whose tokens are drawn");
  EXPECT_FALSE(Sampler(options).Draw(std::vector<float>{1, 2}).ok()) << "it takes Make";
  options.grammar = "root ::= [0-9]";
  EXPECT_EQ(Sampler::Make(options).error(), "a grammar needs the tokenizer whose tokens are drawn");
  options.grammar = "";
  options.dry_breakers = {};
  EXPECT_TRUE(Sampler::Make(options).ok());
  EXPECT_TRUE(Sampler(options).Draw(std::vector<float>{1, 2}).ok());
}

TEST(SamplerApi, RepetitionsEndAtTokensThatHoldABreaker) {
  const Result<Tokenizer> tokenizer = Tokenizer::Open(kModel);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error();
  // After "12=" there was a 3.
  const std::vector<int32_t> text = tokenizer->Encode("12=312=");
  const int32_t three = text[text.size() - 4], equals = text.back();
  std::vector<float> logits(static_cast<size_t>(tokenizer->size()));
  logits[three] = 1;
  logits[equals] = 0.5;
  for (const auto& [breakers, drawn] : std::vector<std::pair<std::vector<std::string>, int32_t>>{{{}, equals},
                                                                                                 {{"+", "\n"}, equals},
                                                                                                 {{"+", "="}, three},
                                                                                                 {{"2"}, three},
                                                                                                 {{"1"}, equals},
                                                                                                 {{"12"}, equals}}) {
    Result<Sampler> sampler = Sampler::Make({.dry_multiplier = 5, .dry_breakers = breakers}, &*tokenizer);
    ASSERT_TRUE(sampler.ok()) << sampler.error();
    sampler->Observe(text);
    EXPECT_EQ(*sampler->Draw(logits), drawn) << testing::PrintToString(breakers);
  }
}

}  // namespace
}  // namespace quern
