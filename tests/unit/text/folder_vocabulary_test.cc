// tokenizer.json: small tokenizers of each kind against the ids of Hugging Face's tokenizers (tests/golden/tokenizers).
#include "text/folder_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "text/tokenizer.h"

namespace quern::text {
namespace {

using hugging_face::Json;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const std::filesystem::path kGolden = QUERN_SOURCE_DIR "/tests/golden/tokenizers";

Json ReadFile(const std::filesystem::path& path) {
  const auto file = MappedFile::Open(path.string());
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? Json::parse(file->bytes().begin(), file->bytes().end()) : Json();
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class FolderVocabulary : public ::testing::TestWithParam<std::string> {};

TEST_P(FolderVocabulary, GivesTheIdsOfTokenizers) {
  const auto metadata = OpenVocabulary((kGolden / GetParam()).string());
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  const auto tokenizer = Tokenizer::FromMetadata(*metadata);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const Json& each : ReadFile(kGolden / GetParam() / "cases.json")) {
    const auto text = each["text"].get<std::string>();
    const auto want = each["ids"].get<std::vector<int32_t>>();
    const std::vector<int32_t> ids = (*tokenizer)->Encode(text);
    EXPECT_THAT(ids, ElementsAreArray(want)) << text;
    // WordPiece forgets case and spaces, Metaspace whether a text began with one; a text between special tokens may get
    // a space.
    const bool same = GetParam() != "bert" && text.find('<') == std::string::npos &&
                      (!GetParam().starts_with("mistral") || !text.starts_with(' '));
    if (same) EXPECT_EQ((*tokenizer)->Decode((*tokenizer)->Encode(text, {.add_special = false})), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, FolderVocabulary, ::testing::ValuesIn(Names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TokenizerFiles Files(const std::string& name) {
  return {ReadFile(kGolden / name / "tokenizer.json"), ReadFile(kGolden / name / "tokenizer_config.json"),
          Json::object(), Json::object(), ""};
}

TEST(TokenizerFolder, RolesAreThoseOfItsFiles) {
  TokenizerFiles files = Files("llama3");
  files.generation_config = Json::parse(R"({"eos_token_id": [1, 7, 9]})");
  auto metadata = ReadTokenizerFiles(files);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_EQ(*metadata->Int("tokenizer.ggml.bos_token_id"), 0);
  EXPECT_EQ(*metadata->Int("tokenizer.ggml.eos_token_id"), 1);
  EXPECT_EQ(*metadata->Int("tokenizer.ggml.eot_token_id"), 7);
  EXPECT_EQ(*metadata->Int("tokenizer.ggml.eom_token_id"), 9);
  EXPECT_TRUE(*metadata->Bool("tokenizer.ggml.add_bos_token"));
  EXPECT_FALSE(*metadata->Bool("tokenizer.ggml.add_eos_token"));
  EXPECT_EQ(*metadata->String("tokenizer.chat_template"), "{{ messages[0].content }}");
  EXPECT_EQ(*metadata->String("tokenizer.ggml.pre"), "llama-bpe");
  files.tokenizer_config = Json::parse(R"({"add_bos_token": false, "chat_template": [{"name": "tools", "template": "t"},
                                           {"name": "default", "template": "d"}]})");
  metadata = ReadTokenizerFiles(files);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_FALSE(*metadata->Bool("tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(*metadata->String("tokenizer.chat_template"), "d");
  files.chat_template = "a file of its own";
  metadata = ReadTokenizerFiles(files);
  EXPECT_EQ(*metadata->String("tokenizer.chat_template"), "a file of its own");
}

TEST(TokenizerFolder, MergesArePairsOrTexts) {
  TokenizerFiles files = Files("gpt2");
  const auto before = ReadTokenizerFiles(files);
  for (Json& merge : files.tokenizer["model"]["merges"]) {
    if (merge.is_array()) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const auto after = ReadTokenizerFiles(files);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(*before->Strings("tokenizer.ggml.merges"), *after->Strings("tokenizer.ggml.merges"));
}

TEST(TokenizerFolder, WhatIsNotThereIsRefusedByName) {
  const struct {
    const char *name, *pointer, *value, *error;
  } cases[] = {
      {"gpt2", "/model/type", "\"Unigram\"", "a tokenizer model \"Unigram\" is not supported"},
      {"gpt2", "/pre_tokenizer", R"({"type": "Whitespace"})",
       "pre_tokenizer {\"type\":\"Whitespace\"} is not supported"},
      {"gpt2", "/pre_tokenizer/add_prefix_space", "true", "pre_tokenizer"},
      {"gpt2", "/pre_tokenizer", "null", "neither of bytes nor has them as a fallback"},
      {"gpt2", "/normalizer", R"({"type": "NFKC"})", "normalizer {\"type\":\"NFKC\"} is not supported"},
      {"gpt2", "/model/merges", "[\"a\"]", "merges: \"a\" is no pair of texts"},
      {"gpt2", "/model/merges", "7", "a list of merges expected"},
      {"gpt2", "/model/vocab/a", "4194304", "the number of token \"a\" is 4194304, below 4194304 expected"},
      {"gpt2", "/model/vocab/a", "5", "two tokens have the number 5"},
      {"gpt2", "/model/vocab", "[]", "vocab of tokens and numbers expected"},
      {"gpt2", "/added_tokens/0/id", "-1", "the number of token \"<s>\" is -1"},
      {"gpt2", "/model/continuing_subword_prefix", "\"##\"", "continuing_subword_prefix \"##\" is not supported"},
      {"llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex", "\"a+b\"",
       "no rule splits a text by a+b, with ignore_merges"},
      {"llama3", "/pre_tokenizer/pretokenizers/0/behavior", "\"MergedWithNext\"", "MergedWithNext"},
      {"llama2", "/normalizer/normalizers/0/prepend", "\"_\"", "normalizer"},
      {"bert", "/normalizer/lowercase", "false", "normalizer"},
      {"bert", "/model/continuing_subword_prefix", "\"@@\"", "continuing_subword_prefix \"@@\""},
  };
  for (const auto& each : cases) {
    TokenizerFiles files = Files(each.name);
    files.tokenizer[Json::json_pointer(each.pointer)] = Json::parse(each.value);
    const auto metadata = ReadTokenizerFiles(files);
    ASSERT_FALSE(metadata.ok()) << each.pointer;
    EXPECT_THAT(metadata.status().message(), HasSubstr(each.error)) << each.pointer;
  }
}

TEST(TokenizerFolder, AFolderWithoutOneSaysSo) {
  const auto metadata = OpenVocabulary(kGolden.string());
  EXPECT_THAT(metadata.status().message(), HasSubstr("has no tokenizer.json"));
}

}  // namespace
}  // namespace quern::text
