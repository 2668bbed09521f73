// The rules of splitting, against the words that another implementation of regular expressions finds
// (tests/golden/record_splits.py), and against hostile texts.
#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace quern::text {
namespace {

PreTokenizer Rule(std::string_view name) {
  const StatusOr<const SplitRule*> rule = FindSplitRule(name);
  EXPECT_TRUE(rule.ok()) << rule.status();
  StatusOr<PreTokenizer> made = PreTokenizer::Make(**rule);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

std::vector<std::string> WordsOf(const PreTokenizer& rule, std::string_view text) {
  std::vector<std::string> words;
  size_t begin = 0;
  for (const size_t end : rule.Split(text)) {
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return words;
}

TEST(PreTokenizer, SplitsLikeTheExpressionsOfTheModels) {
  std::ifstream golden(std::string(QUERN_SOURCE_DIR) + "/tests/golden/splits.txt");
  std::string line;
  ASSERT_TRUE(std::getline(golden, line));
  const std::vector<std::string> texts = nlohmann::json::parse(line);
  std::set<std::string_view> seen;
  while (std::getline(golden, line)) {
    const std::string name = line.substr(0, line.find('\t'));
    const std::vector<std::vector<std::string>> want = nlohmann::json::parse(line.substr(name.size() + 1));
    const PreTokenizer rule = Rule(name);
    seen.insert((*FindSplitRule(name))->patterns[0]);
    ASSERT_EQ(want.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(WordsOf(rule, texts[i]), want[i]) << name << ", text " << i;
  }
  EXPECT_GE(seen.size(), 15u);
}

TEST(PreTokenizer, EveryRuleIsMadeAndKeepsEveryByte) {
  const std::string texts[] = {"",
                               "a",
                               "\xff\xfe\x80",
                               "\xf0\x9f\x98",
                               std::string(1000, ' ') + "x",
                               std::string("\0\n\0", 3),
                               "\xed\xa0\x80 \xc0\x80 caf\xc3\xa9"};
  std::set<std::string_view> names;
  for (const std::string_view name : SplitRuleNames()) {
    EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
    const PreTokenizer rule = Rule(name);
    for (const std::string& text : texts) WordsOf(rule, text);
  }
  EXPECT_GT(names.size(), 40u);
}

TEST(PreTokenizer, NamesWhatThereIs) {
  const std::string message(FindSplitRule("no-such").status().message());
  EXPECT_TRUE(message.starts_with("tokenizer.ggml.pre \"no-such\" is not supported; these are: gpt-2, ")) << message;
  EXPECT_FALSE(FindSplitRule("").ok());
  EXPECT_FALSE(FindSplitRule("gpt").ok());
}

// A letter for each byte of a long text: no rule takes time or stack that grows faster than the text.
TEST(PreTokenizer, LongTextsOfOneKind) {
  for (const std::string_view name : {"gpt-2", "llama-bpe", "gpt-4o", "deepseek-v3", "kimi-k2", "default"}) {
    const PreTokenizer rule = Rule(name);
    for (const std::string_view unit : {"a", "A", " ", "1", "!", "\n", "\xe4\xbd\xa0", "aA", " \n", "\xff"}) {
      std::string text;
      while (text.size() < 200000) text += unit;
      WordsOf(rule, text);
    }
  }
}

}  // namespace
}  // namespace quern::text
