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

}  // namespace
}  // namespace quern
