// The SPM tokenizer against the ids that llama.cpp gives for the same vocabularies.
#include "import/spm_tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace quern {
namespace {

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class Vocabulary : public testing::TestWithParam<const char*> {};

TEST_P(Vocabulary, EncodesLikeTheReference) {
  const std::filesystem::path base = std::filesystem::path(QUERN_MODELS_DIR) / "vocab" / GetParam();
  if (!std::filesystem::exists(base)) GTEST_SKIP() << base << " is absent";
  const StatusOr<GgufFile> file = GgufFile::Open(base);
  ASSERT_TRUE(file.ok()) << file.status();
  const StatusOr<SpmTokenizer> tokenizer = SpmTokenizer::FromGguf(*file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  // Cases are separated by a marker line, expected ids are one line a case.
  const std::string cases = ReadAll(base.string() + ".inp"), marker = "\n__ggml_vocab_test__\n";
  std::istringstream expected(ReadAll(base.string() + ".out"));
  int checked = 0;
  for (size_t at = 0; at < cases.size();) {
    size_t end = cases.find(marker, at);
    if (end == std::string::npos) end = cases.size();
    const std::string text = cases.substr(at, end - at);
    at = end + marker.size();
    std::string line;
    if (!std::getline(expected, line)) break;
    std::istringstream numbers(line);
    std::vector<int32_t> want;
    for (int32_t id; numbers >> id;) want.push_back(id);
    const std::vector<int32_t> got = tokenizer->Encode(text, false);
    EXPECT_EQ(got, want) << "case " << checked << ": \"" << text << '"';
    EXPECT_EQ(tokenizer->Decode(got), text) << "case " << checked;
    ++checked;
  }
  EXPECT_GT(checked, 30);
}

INSTANTIATE_TEST_SUITE_P(Real, Vocabulary, testing::Values("ggml-vocab-llama-spm.gguf"));

TEST(SpmTokenizer, RefusesAnotherModel) {
  const std::filesystem::path path = std::filesystem::path(QUERN_MODELS_DIR) / "vocab" / "ggml-vocab-gpt-2.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const StatusOr<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(SpmTokenizer::FromGguf(*file).status().message(),
            "tokenizer model \"gpt2\" is not supported, only \"llama\" (SentencePiece) is");
}

struct Token {
  std::string_view text;
  float score;
  int32_t kind;  // as in the file: 1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte
};

// A GGUF file of a vocabulary alone, whose token 1 begins a text.
std::vector<uint8_t> FileOf(const std::vector<Token>& tokens) {
  std::vector<uint8_t> bytes;
  auto put = [&](auto value) {
    const auto* data = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), data, data + sizeof(value));
  };
  auto text = [&](std::string_view value) {
    put(uint64_t{value.size()});
    bytes.insert(bytes.end(), value.begin(), value.end());
  };
  auto array = [&](std::string_view key, uint32_t type) {
    text(key);
    for (const uint32_t n : {9u, type}) put(n);
    put(uint64_t{tokens.size()});
  };
  put(uint32_t{0x46554747});
  put(uint32_t{3});
  put(uint64_t{0});
  put(uint64_t{5});
  text("tokenizer.ggml.model");
  put(uint32_t{8});
  text("llama");
  text("tokenizer.ggml.bos_token_id");
  put(uint32_t{4});
  put(uint32_t{1});
  array("tokenizer.ggml.tokens", 8);
  for (const Token& token : tokens) text(token.text);
  array("tokenizer.ggml.scores", 6);
  for (const Token& token : tokens) put(token.score);
  array("tokenizer.ggml.token_type", 5);
  for (const Token& token : tokens) put(token.kind);
  return bytes;
}
std::vector<uint8_t> FileWithByteToken(std::string_view byte_token) {
  return FileOf({{"<unk>", 0, 2}, {byte_token, 0, 6}, {"a", -1, 1}});
}

// The longest user-defined token wins, of equal ones the first; a prompt of any length takes time by its own length,
// however many such tokens there are.
TEST(SpmTokenizer, ManyUserDefinedTokens) {
  std::vector<std::string> texts;
  for (int i = 0; i < 100000; ++i) texts.push_back("<" + std::to_string(i) + ">");
  std::vector<Token> tokens = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"<<", 0, 4}, {"<<1", 0, 4}, {"<<1", 0, 4}, {"a", 0, 1}};
  for (const std::string& text : texts) tokens.push_back({text, 0, 4});
  const std::vector<uint8_t> bytes = FileOf(tokens);
  const StatusOr<GgufFile> file = GgufFile::Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  const StatusOr<SpmTokenizer> tokenizer = SpmTokenizer::FromGguf(*file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->Encode("<7><<1<99999><<<1", false),
            (std::vector<int32_t>{6 + 7, 3, 6 + 99999, 2, 0, 0, 0, 0, 0}));
  std::string prompt;
  for (int i = 0; i < 30000; ++i) prompt += "<12";
  EXPECT_EQ(tokenizer->Encode(prompt + "<5>", false).back(), 6 + 5);
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
  const StatusOr<GgufFile> file = GgufFile::Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  const StatusOr<SpmTokenizer> tokenizer = SpmTokenizer::FromGguf(*file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  using Ids = std::vector<int32_t>;
  // "bc" goes before "ab", which is stale from then on; what is left of it and "bc" is a merge again.
  EXPECT_EQ(tokenizer->Encode("abc", false), (Ids{9, 12}));
  EXPECT_EQ(tokenizer->Encode("abb", false), (Ids{9, 7, 5}));
  EXPECT_EQ(tokenizer->Encode("bcc", false), (Ids{9, 8, 6}));
  EXPECT_EQ(tokenizer->Encode("babcb", true), (Ids{1, 9, 5, 12, 5}));
  // Of equal scores the leftmost; a space in front, also behind what a user defined.
  EXPECT_EQ(tokenizer->Encode("caaa", false), (Ids{9, 6, 11, 4}));
  EXPECT_EQ(tokenizer->Encode("aca<|x|>acc a", false), (Ids{10, 6, 4, 3, 10, 13, 10}));
  EXPECT_EQ(tokenizer->Decode({10, 6, 4}), "aca");
  // Bytes as a fallback, and what has none.
  EXPECT_EQ(tokenizer->Encode("a\u00e9", false), (Ids{10, 2, 0}));
}

TEST(SpmTokenizer, ReadsByteTokens) {
  for (const auto& [token, byte] :
       {std::pair("<0x0A>", '\n'), std::pair("<0xfF>", '\xff'), std::pair("<0x00>", '\0')}) {
    const std::vector<uint8_t> bytes = FileWithByteToken(token);
    const StatusOr<GgufFile> file = GgufFile::Parse(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    const StatusOr<SpmTokenizer> tokenizer = SpmTokenizer::FromGguf(*file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ(tokenizer->Piece(1), std::string(1, byte));
    EXPECT_EQ(tokenizer->Encode(std::string_view(&byte, 1), false).back(), 1);
  }
}

// The two characters are digits and nothing else that a number may begin with: "<0x-1>" once was byte 2^32 - 1.
TEST(SpmTokenizer, RefusesOtherByteTokens) {
  for (const char* const token :
       {"<0x-1>", "<0x+1>", "<0x 1>", "<0x1 >", "<0xG0>", "<0x41]", "<0x0x>", "<0x041>", "<0x1>", "0x41", ""}) {
    const std::vector<uint8_t> bytes = FileWithByteToken(token);
    const StatusOr<GgufFile> file = GgufFile::Parse(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(SpmTokenizer::FromGguf(*file).status().message(),
              "byte token 1 is \"" + std::string(token) + "\", <0xNN> expected");
  }
}

}  // namespace
}  // namespace quern
