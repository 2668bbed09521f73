// Every vocabulary of ../shared/models/vocab and of tests/golden/vocabularies against the ids that llama.cpp gives for
// the same texts.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "import/gguf.h"
#include "text/tokenizer.h"

namespace quern::text {
namespace {

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// How many vocabularies there are in `folder`.
int Check(const std::filesystem::path& folder) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    SCOPED_TRACE(entry.path().string());
    StatusOr<GgufFile> file = GgufFile::Open(entry.path());
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) continue;
    const auto tokenizer = Tokenizer::FromMetadata(std::make_shared<const GgufFile>(*std::move(file)));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    if (!tokenizer.ok()) continue;
    // The others change blanks and characters, or have pieces that stand for none.
    const std::string name = entry.path().filename().string();
    const bool lossless = name.find("bert") == std::string::npos && !name.starts_with("t5");

    // Cases are separated by a marker line, expected ids are one line a case.
    const std::string cases = ReadAll(entry.path().string() + ".inp"), marker = "\n__ggml_vocab_test__\n";
    std::istringstream expected(ReadAll(entry.path().string() + ".out"));
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
      const std::vector<int32_t> got = (*tokenizer)->Encode(text, {.add_special = false, .parse_special = false});
      EXPECT_EQ(got, want) << "case " << checked << ": \"" << text << '"';
      if (lossless) {
        EXPECT_EQ((*tokenizer)->Decode(got), text) << "case " << checked;
      }
      ++checked;
    }
    EXPECT_GT(checked, 30);
    ++files;
  }
  return files;
}

TEST(Vectors, EveryVocabularyEncodesLikeTheReference) {
  const std::filesystem::path folder = std::filesystem::path(QUERN_MODELS_DIR) / "vocab";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  EXPECT_GE(Check(folder), 5);
}

TEST(Vectors, SmallVocabulariesEncodeLikeTheReference) {
  EXPECT_EQ(Check(QUERN_SOURCE_DIR "/tests/golden/vocabularies"), 3);
}

}  // namespace
}  // namespace quern::text
