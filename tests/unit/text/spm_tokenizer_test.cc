// The SPM tokenizer on vocabularies made by hand.
#include <gtest/gtest.h>

#include "import/gguf.h"
#include "support/vocabulary_file.h"
#include "text/tokenizer.h"

namespace quern::text {
namespace {

// A vocabulary whose token 1 begins a text.
std::vector<uint8_t> FileOf(const std::vector<TestToken>& tokens) {
  return VocabularyFile("llama", tokens).Number("tokenizer.ggml.bos_token_id", 1).Bytes();
}
std::vector<uint8_t> FileWithByteToken(std::string_view byte_token) {
  return FileOf({{"<unk>", 0, 2}, {byte_token, 0, 6}, {"a", -1, 1}});
}

StatusOr<std::unique_ptr<const Tokenizer>> TokenizerOf(std::span<const uint8_t> bytes) {
  StatusOr<GgufFile> file = GgufFile::Parse(bytes);
  if (!file.ok()) return file.status();
  return Tokenizer::FromMetadata(std::make_shared<const GgufFile>(*std::move(file)));
}

// As text that a user typed, or that is data: control tokens are no tokens there.
constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};

// The longest user-defined token wins, of equal ones the first; a prompt of any length takes time by its own length,
// however many such tokens there are.
TEST(SpmTokenizer, ManyUserDefinedTokens) {
  std::vector<std::string> texts;
  for (int i = 0; i < 100000; ++i) texts.push_back("<" + std::to_string(i) + ">");
  std::vector<TestToken> tokens = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"<<", 0, 4},
                                   {"<<1", 0, 4},   {"<<1", 0, 4}, {"a", 0, 1}};
  for (const std::string& text : texts) tokens.push_back({text, 0, 4});
  const std::vector<uint8_t> bytes = FileOf(tokens);
  const auto made = TokenizerOf(bytes);
  ASSERT_TRUE(made.ok()) << made.status();
  const Tokenizer& tokenizer = **made;
  EXPECT_EQ(tokenizer.Encode("<7><<1<99999><<<1", kPlain),
            (std::vector<int32_t>{6 + 7, 3, 6 + 99999, 2, 0, 0, 0, 0, 0}));
  std::string prompt;
  for (int i = 0; i < 30000; ++i) prompt += "<12";
  EXPECT_EQ(tokenizer.Encode(prompt + "<5>", kPlain).back(), 6 + 5);
}

// By hand, so that it holds without the files of real vocabularies.
TEST(SpmTokenizer, MergesTheBestPairFirst) {
  const std::vector<uint8_t> bytes = FileOf({{"<unk>", 0, 2},     // 0
                                             {"<s>", 0, 3},       // 1
                                             {"<0xC3>", 0, 6},    // 2
                                             {"<|x|>", 0, 4},     // 3
                                             {"a", -1, 1},        // 4
                                             {"b", -2, 1},        // 5
                                             {"c", -3, 1},        // 6
                                             {"ab", -4, 1},       // 7
                                             {"bc", -3.5, 1},     // 8
                                             {"\u2581", -5, 1},   // 9
                                             {"\u2581a", -6, 1},  // 10
                                             {"aa", -7, 1},       // 11
                                             {"abc", -2.5, 1},    // 12: no merge of two pieces makes it out of "abc"
                                             {"cc", -8, 1}});     // 13
  const auto made = TokenizerOf(bytes);
  ASSERT_TRUE(made.ok()) << made.status();
  const Tokenizer& tokenizer = **made;
  using Ids = std::vector<int32_t>;
  // "bc" goes before "ab", which is stale from then on; what is left of it and "bc" is a merge again.
  EXPECT_EQ(tokenizer.Encode("abc", kPlain), (Ids{9, 12}));
  EXPECT_EQ(tokenizer.Encode("abb", kPlain), (Ids{9, 7, 5}));
  EXPECT_EQ(tokenizer.Encode("bcc", kPlain), (Ids{9, 8, 6}));
  EXPECT_EQ(tokenizer.Encode("babcb"), (Ids{1, 9, 5, 12, 5}));
  // Of equal scores the leftmost; a space in front, also behind what a user defined.
  EXPECT_EQ(tokenizer.Encode("caaa", kPlain), (Ids{9, 6, 11, 4}));
  EXPECT_EQ(tokenizer.Encode("aca<|x|>acc a", kPlain), (Ids{10, 6, 4, 3, 10, 13, 10}));
  EXPECT_EQ(tokenizer.Decode(std::vector<int32_t>{10, 6, 4}), "aca");
  // Bytes as a fallback, and what has none.
  EXPECT_EQ(tokenizer.Encode("a\u00e9", kPlain), (Ids{10, 2, 0}));
}

TEST(SpmTokenizer, ReadsByteTokens) {
  for (const auto& [token, byte] :
       {std::pair("<0x0A>", '\n'), std::pair("<0xfF>", '\xff'), std::pair("<0x00>", '\0')}) {
    const std::vector<uint8_t> bytes = FileWithByteToken(token);
    const auto made = TokenizerOf(bytes);
    ASSERT_TRUE(made.ok()) << made.status();
    const Tokenizer& tokenizer = **made;
    EXPECT_EQ(tokenizer.Piece(1), std::string(1, byte));
    EXPECT_EQ(tokenizer.Encode(std::string_view(&byte, 1), kPlain).back(), 1);
  }
}

// The two characters are digits and nothing else that a number may begin with: "<0x-1>" once was byte 2^32 - 1.
TEST(SpmTokenizer, RefusesOtherByteTokens) {
  for (const char* const token :
       {"<0x-1>", "<0x+1>", "<0x 1>", "<0x1 >", "<0xG0>", "<0x41]", "<0x0x>", "<0x041>", "<0x1>", "0x41", ""}) {
    const std::vector<uint8_t> bytes = FileWithByteToken(token);
    EXPECT_EQ(TokenizerOf(bytes).status().message(), "byte token 1 is \"" + std::string(token) + "\", <0xNN> expected");
  }
}

}  // namespace
}  // namespace quern::text
