// What GGUF files and folders say of sampling: numbers that make sense, and why others are not taken.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "quern/quern.h"
#include "support/gguf_bytes.h"
#include "support/temp_folder.h"
#include "support/temporary_file.h"

namespace quern {
namespace {

using Numbers = std::map<std::string, double>;

SamplingDefaults DefaultsOf(const support::GgufBytes& bytes) {
  const support::TemporaryFile file(bytes.Build());
  const Result<SamplingDefaults> defaults = SamplingDefaultsOf(file.path());
  EXPECT_TRUE(defaults.ok()) << defaults.error();
  return defaults.ok() ? *defaults : SamplingDefaults();
}

Numbers NumbersOf(const SamplingDefaults& defaults) {
  Numbers numbers;
  for (const auto& [number, value] : defaults.numbers) numbers[number->name] = value;
  return numbers;
}

TEST(SamplingDefaults, AreThoseOfTheFile) {
  support::GgufBytes file;
  file.Put("general.name", "x");
  EXPECT_TRUE(NumbersOf(DefaultsOf(file)).empty());
  file.Put("general.sampling.temp", 0.5F);
  file.Put("general.sampling.top_k", uint32_t{20});
  file.Put("general.sampling.min_p", uint32_t{0});  // a whole number is one too
  file.Put("general.sampling.penalty_last_n", uint32_t{9});
  file.Put("general.sampling.penalty_repeat", 1.25F);
  file.Put("general.sampling.xtc_threshold", 0.25F);
  file.Put("general.sampling.mirostat_tau", 5.0F);  // off, since nothing says that it is on
  file.Put("general.sampling.mirostat_eta", 0.5F);
  const Numbers want = {{"temperature", 0.5},     {"top_k", 20},           {"min_p", 0},         {"penalty_last", 9},
                        {"repeat_penalty", 1.25}, {"xtc_threshold", 0.25}, {"mirostat_eta", 0.5}};
  EXPECT_EQ(NumbersOf(DefaultsOf(file)), want);
  EXPECT_TRUE(DefaultsOf(file).ignored.empty());
  file.Put("general.sampling.mirostat", uint32_t{2});
  EXPECT_EQ(NumbersOf(DefaultsOf(file)).count("mirostat_tau"), 1u);
}

TEST(SamplingDefaults, SayWhatMakesNoSense) {
  support::GgufBytes file;
  file.Put("general.sampling.temp", "hot");
  file.Put("general.sampling.top_k", 2.0F);
  file.Put("general.sampling.top_p", 0.0F);
  file.Put("general.sampling.min_p", true);
  file.Put("general.sampling.mirostat", uint32_t{1});
  file.Put("general.sampling.mirostat_tau", 5.0F);
  file.Put("general.sampling.penalty_last_n", uint32_t{4000000000});
  file.Put("general.sampling.sequence", "kpt");
  const SamplingDefaults defaults = DefaultsOf(file);
  EXPECT_TRUE(defaults.numbers.empty());
  EXPECT_EQ(
      defaults.ignored,
      (std::vector<std::string>{
          "general.sampling.mirostat is not 2, the version there is, nor 0",
          "general.sampling.temp is not a number from 0 on", "general.sampling.top_k is not a whole number from 0 on",
          "general.sampling.top_p is not a number in (0, 1]", "general.sampling.min_p is not a number in [0, 1]",
          "general.sampling.penalty_last_n is not a whole number from -1 on",
          "general.sampling.sequence: the order of steps is Quern's"}));
  const Result<SamplingDefaults> none = SamplingDefaultsOf("/nowhere/model.gguf");
  EXPECT_EQ(none.code(), ErrorCode::kResource);
}

SamplingDefaults DefaultsOfFolder(const std::string& config) {
  const testing::TempFolder folder;
  std::ofstream(folder.path() + "/generation_config.json") << config;
  const Result<SamplingDefaults> defaults = SamplingDefaultsOf(folder.path());
  EXPECT_TRUE(defaults.ok()) << defaults.error();
  return defaults.ok() ? *defaults : SamplingDefaults();
}

TEST(SamplingDefaults, AreThoseOfTheFolder) {
  EXPECT_TRUE(NumbersOf(DefaultsOfFolder("{}")).empty());
  const Numbers want = {{"temperature", 0.75}, {"top_k", 20}, {"top_p", 0.5}, {"repeat_penalty", 1.25}};
  const std::string numbers = R"("temperature": 0.75, "top_k": 20, "top_p": 0.5, "repetition_penalty": 1.25)";
  EXPECT_EQ(NumbersOf(DefaultsOfFolder("{" + numbers + "}")), want);
  EXPECT_EQ(
      NumbersOf(DefaultsOfFolder(R"({"do_sample": true, "eos_token_id": [1, 2], "min_p": null, )" + numbers + "}")),
      want);
  EXPECT_EQ(NumbersOf(DefaultsOfFolder(R"({"do_sample": false, )" + numbers + "}")), (Numbers{{"temperature", 0}}));
  const SamplingDefaults wrong = DefaultsOfFolder(R"({"temperature": "hot", "top_k": 1.5, "top_p": 2})");
  EXPECT_TRUE(wrong.numbers.empty());
  EXPECT_EQ(wrong.ignored, (std::vector<std::string>{"temperature of generation_config.json is not a number from 0 on",
                                                     "top_k of generation_config.json is not a whole number from 0 on",
                                                     "top_p of generation_config.json is not a number in (0, 1]"}));
  const testing::TempFolder damaged;
  std::ofstream(damaged.path() + "/generation_config.json") << "{";
  EXPECT_EQ(SamplingDefaultsOf(damaged.path()).code(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace quern
