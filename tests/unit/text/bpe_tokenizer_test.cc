// Byte-level BPE and WordPiece on vocabularies made by hand.
#include <gtest/gtest.h>

#include "import/gguf.h"
#include "support/vocabulary_file.h"
#include "text/tokenizer.h"

namespace quern::text {
namespace {

using Ids = std::vector<int32_t>;

StatusOr<std::unique_ptr<const Tokenizer>> TokenizerOf(std::span<const uint8_t> bytes) {
  StatusOr<GgufFile> file = GgufFile::Parse(bytes);
  if (!file.ok()) return file.status();
  return Tokenizer::FromMetadata(std::make_shared<const GgufFile>(*std::move(file)));
}

const std::vector<TestToken> kTokens = {
    {"a"},
    {"b"},
    {"c"},
    {"\u0120"},
    {"ab"},
    {"bc"},
    {"\u0120a"},
    {"abc"},  // 0..7
    {"\u00c3"},
    {"\u00a9"},
    {"<|end|>", 0, 3},
    {"<tool>", 0, 4},
    {"\u010a"}  // 8..12
};

VocabularyFile Bpe(std::string_view pre, const std::vector<std::string_view>& merges) {
  return VocabularyFile("gpt2", kTokens)
      .Text("tokenizer.ggml.pre", pre)
      .Texts("tokenizer.ggml.merges", merges)
      .Number("tokenizer.ggml.bos_token_id", 10);
}

TEST(BpeTokenizer, MergesTheFirstRankFirst) {
  const std::vector<uint8_t> bytes = Bpe("gpt-2", {"b c", "a b", "\u0120 a", "a bc"}).Bytes();
  const auto made = TokenizerOf(bytes);
  ASSERT_TRUE(made.ok()) << made.status();
  const Tokenizer& tokenizer = **made;
  EXPECT_EQ(tokenizer.Encode("abc"), (Ids{7}));  // "bc" first, then "a" "bc"
  EXPECT_EQ(tokenizer.Encode("ab"), (Ids{4}));
  EXPECT_EQ(tokenizer.Encode("abab"), (Ids{4, 4}));
  EXPECT_EQ(tokenizer.Encode(" ab a"), (Ids{3, 4, 6}));
  EXPECT_EQ(tokenizer.Encode("\u00e9\n"), (Ids{8, 9, 12}));
  EXPECT_EQ(tokenizer.Decode(Ids{8, 9, 12, 6}), "\u00e9\n a");
  EXPECT_EQ(tokenizer.Piece(9), "\xa9");
  // A byte that is no token, and nothing unknown: left out.
  EXPECT_EQ(tokenizer.Encode("axb"), (Ids{0, 1}));
}

TEST(BpeTokenizer, WholeWordsMayIgnoreMerges) {
  for (const auto& [pre, want] : {std::pair<const char*, Ids>{"gpt-2", {4, 2}}, {"llama-bpe", {10, 7}}}) {
    const std::vector<uint8_t> bytes = Bpe(pre, {"a b"}).Bytes();
    const auto made = TokenizerOf(bytes);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ((*made)->Encode("abc"), want) << pre;  // llama-bpe also begins a text with its token
  }
}

TEST(BpeTokenizer, SpecialTokens) {
  const std::vector<uint8_t> bytes = Bpe("gpt-2", {"a b"}).Bytes();
  const auto made = TokenizerOf(bytes);
  ASSERT_TRUE(made.ok()) << made.status();
  const Tokenizer& tokenizer = **made;
  EXPECT_EQ(tokenizer.Encode("a<|end|>b<tool>"), (Ids{0, 10, 1, 11}));
  EXPECT_EQ(tokenizer.Encode("a<|end|>b<tool>", {.parse_special = false}), (Ids{0, 1, 11})) << "letters unknown here";
  EXPECT_TRUE(tokenizer.vocabulary().IsEnd(10));
  EXPECT_FALSE(tokenizer.vocabulary().IsEnd(11));
  EXPECT_FALSE(tokenizer.vocabulary().IsEnd(-1));
  EXPECT_EQ(tokenizer.Piece(10), "");
  EXPECT_EQ(tokenizer.Piece(10, true), "<|end|>");
  EXPECT_EQ(tokenizer.Decode(Ids{0, 10, 11}, true), "a<|end|><tool>");
}

TEST(BpeTokenizer, RefusesWhatIsWrong) {
  const auto error = [](const VocabularyFile& file) {
    const std::vector<uint8_t> bytes = file.Bytes();
    return std::string(TokenizerOf(bytes).status().message());
  };
  EXPECT_EQ(error(Bpe("gpt-2", {"a b", "ab"})), "merge 1 is \"ab\", two texts with a space between expected");
  EXPECT_EQ(error(Bpe("gpt-2", {"a "})), "merge 0 is \"a \", two texts with a space between expected");
  EXPECT_EQ(error(Bpe("gpt-2", {""})), "merge 0 is \"\", two texts with a space between expected");
  EXPECT_EQ(error(VocabularyFile("gpt2", kTokens)), "metadata key \"tokenizer.ggml.merges\" is missing");
  EXPECT_EQ(error(Bpe("gpt-2", {}).Number("tokenizer.ggml.eos_token_id", 13)),
            "metadata key \"tokenizer.ggml.eos_token_id\" is 13, outside the vocabulary of 13");
  EXPECT_EQ(error(VocabularyFile("gpt2", {})),
            "the tokenizer has 0 tokens, 0 scores and 0 types; equal counts above 0 expected");
  EXPECT_EQ(error(VocabularyFile("gpt2", {{"a", 0, 7}})), "token 0 has unknown type 7");
  EXPECT_EQ(error(VocabularyFile("unigram", kTokens)),
            "tokenizer model \"unigram\" is not supported; \"llama\" (SentencePiece), \"gpt2\" (byte-level BPE), "
            "\"bert\" (WordPiece), \"t5\" (Unigram) and \"rwkv\" are");
}

// A text of one long word costs little more than its length.
TEST(BpeTokenizer, LongWords) {
  const std::vector<uint8_t> bytes = Bpe("gpt-2", {"a b", "b c", "a bc"}).Bytes();
  const auto made = TokenizerOf(bytes);
  ASSERT_TRUE(made.ok()) << made.status();
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "ab";
  EXPECT_EQ((*made)->Encode(text).size(), 100000u);
}

TEST(WpmTokenizer, LongestPieceFirst) {
  const std::vector<uint8_t> bytes = VocabularyFile("bert", {{"[UNK]", 0, 2},
                                                             {"[CLS]", 0, 3},
                                                             {"[SEP]", 0, 3},
                                                             {"\u2581he"},
                                                             {"\u2581hell"},
                                                             {"o"},
                                                             {"llo"},
                                                             {"\u2581!"},
                                                             {"\u2581\u4e2d"},
                                                             {"\u2581\u2581"}})
                                         .Number("tokenizer.ggml.cls_token_id", 1)
                                         .Number("tokenizer.ggml.seperator_token_id", 2)
                                         .Number("tokenizer.ggml.unknown_token_id", 0)
                                         .Bytes();
  const auto made = TokenizerOf(bytes);
  ASSERT_TRUE(made.ok()) << made.status();
  const Tokenizer& tokenizer = **made;
  EXPECT_EQ(tokenizer.Encode("Hello!"), (Ids{1, 4, 5, 7, 2}));
  EXPECT_EQ(tokenizer.Encode("h\u00e9 \t\u4e2d!"), (Ids{1, 3, 8, 7, 2}));
  EXPECT_EQ(tokenizer.Encode("hex hello"), (Ids{1, 0, 4, 5, 2})) << "a word is whole or unknown";
  EXPECT_EQ(tokenizer.Encode("HE\u0301LLO\x01\xff", {.add_special = false}), (Ids{4, 5}));
  EXPECT_EQ(tokenizer.Decode(Ids{4, 5, 7}), "hello !");
}

}  // namespace
}  // namespace quern::text
