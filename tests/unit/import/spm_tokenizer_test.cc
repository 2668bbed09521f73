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

// A GGUF file of a vocabulary alone. `byte_token`: the text of its one byte token.
std::vector<uint8_t> FileWithByteToken(std::string_view byte_token) {
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
    put(uint64_t{3});
  };
  put(uint32_t{0x46554747});
  put(uint32_t{3});
  put(uint64_t{0});
  put(uint64_t{4});
  text("tokenizer.ggml.model");
  put(uint32_t{8});
  text("llama");
  array("tokenizer.ggml.tokens", 8);
  for (const std::string_view token : {std::string_view("<unk>"), byte_token, std::string_view("a")}) text(token);
  array("tokenizer.ggml.scores", 6);
  for (const float score : {0.0f, 0.0f, -1.0f}) put(score);
  array("tokenizer.ggml.token_type", 5);
  for (const int32_t kind : {2, 6, 1}) put(kind);
  return bytes;
}

TEST(SpmTokenizer, ReadsByteTokens) {
  for (const auto& [token, byte] : {std::pair("<0x0A>", '\n'), std::pair("<0xfF>", '\xff'), std::pair("<0x00>", '\0')}) {
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
  for (const char* const token : {"<0x-1>", "<0x+1>", "<0x 1>", "<0x1 >", "<0xG0>", "<0x41]", "<0x0x>", "<0x041>", "<0x1>", "0x41", ""}) {
    const std::vector<uint8_t> bytes = FileWithByteToken(token);
    const StatusOr<GgufFile> file = GgufFile::Parse(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(SpmTokenizer::FromGguf(*file).status().message(), "byte token 1 is \"" + std::string(token) + "\", <0xNN> expected");
  }
}

}  // namespace
}  // namespace quern
