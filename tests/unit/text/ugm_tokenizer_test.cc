// Unigram and RWKV's tokenizer on vocabularies made by hand, and what is refused of them. tests/golden/vocabularies has
// llama.cpp's ids for more.
#include <gtest/gtest.h>

#include "import/gguf.h"
#include "support/vocabulary_file.h"
#include "text/normaliser.h"
#include "text/tokenizer.h"

namespace quern::text {
namespace {

constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};

StatusOr<std::unique_ptr<const Tokenizer>> TokenizerOf(std::span<const uint8_t> bytes) {
  StatusOr<GgufFile> file = GgufFile::Parse(bytes);
  if (!file.ok()) return file.status();
  return Tokenizer::FromMetadata(std::make_shared<const GgufFile>(*std::move(file)));
}

TEST(UgmTokenizer, TakesTheGreatestSum) {
  const std::vector<uint8_t> bytes = VocabularyFile("t5", {{"<pad>", 0, 3},
                                                           {"</s>", 0, 3},
                                                           {"<unk>", 0, 2},
                                                           {"ab", -5, 1},
                                                           {"a", -2, 1},
                                                           {"b", -2, 1},
                                                           {"bc", -1, 1},
                                                           {"abc", -9, 1}})
                                         .Number("tokenizer.ggml.eos_token_id", 1)
                                         .Bytes();
  const auto tokenizer = TokenizerOf(bytes);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("ab", kPlain), (std::vector<int32_t>{4, 5}));       // -4 above -5
  EXPECT_EQ((*tokenizer)->Encode("abc", kPlain), (std::vector<int32_t>{4, 6}));      // -3 above -6 and -9
  EXPECT_EQ((*tokenizer)->Encode("xyab", kPlain), (std::vector<int32_t>{2, 4, 5}));  // unknown ones are one
  EXPECT_EQ((*tokenizer)->Encode("ab"), (std::vector<int32_t>{4, 5, 1}));            // a text ends by itself
}

TEST(UgmTokenizer, NeedsAnUnknownToken) {
  const std::vector<uint8_t> bytes = VocabularyFile("t5", {{"a", 0, 1}}).Bytes();
  const auto tokenizer = TokenizerOf(bytes);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().message(), "a Unigram tokenizer needs a token of the type unknown, and has none");
}

TEST(Normaliser, DamagedMapsAreRefusedOrReplaceNothing) {
  const std::vector<uint8_t> short_one = {8, 0, 0}, long_one = {8, 0, 0, 0, 1, 2, 3, 4}, no_end = {0, 0, 0, 0, 'a'};
  EXPECT_FALSE(Normaliser::Of(short_one).ok());
  EXPECT_FALSE(Normaliser::Of(long_one).ok());
  EXPECT_FALSE(Normaliser::Of(no_end).ok());
  EXPECT_EQ(Normaliser().At("a").taken, 0u);
  // The words of "a": its own, on which a replacement hangs, and where that begins.
  std::vector<uint32_t> words(128, 0xff);
  words[0] = 1 << 10;
  words[1 ^ 'a'] = 'a' | 1 << 8 | 2 << 10;
  for (const uint32_t begin : {0u, 2u, 3u, 1000u, 0x7fffffffu}) {
    words[1 ^ 'a' ^ 2] = 1u << 31 | begin;
    const auto* first = reinterpret_cast<const uint8_t*>(words.data());
    std::vector<uint8_t> bytes = {0, 2, 0, 0};
    bytes.insert(bytes.end(), first, first + 512);
    for (const char c : {'x', 'y', '\0'}) bytes.push_back(static_cast<uint8_t>(c));
    const StatusOr<Normaliser> made = Normaliser::Of(bytes);
    ASSERT_TRUE(made.ok()) << made.status();
    const Normaliser::Replaced replaced = made->At("ab");
    EXPECT_EQ(replaced.taken, begin < 3 ? 1u : 0u) << begin;
    EXPECT_EQ(replaced.by, begin == 0 ? "xy" : "") << begin;
    EXPECT_EQ(made->At("b").taken, 0u);
  }
  // Words that lead outside the array.
  std::vector<uint8_t> far = {8, 0, 0, 0, 0, 0xfc, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0};
  const StatusOr<Normaliser> outside = Normaliser::Of(far);
  ASSERT_TRUE(outside.ok()) << outside.status();
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(outside->At(std::string(3, static_cast<char>(byte))).taken, 0u);
}

TEST(RwkvTokenizer, BytesAreWhatEscapesSay) {
  const std::vector<uint8_t> bytes =
      VocabularyFile("rwkv", {{"<s>", 0, 1}, {"a", 0, 1}, {"\\xff\\n", 0, 1}, {"a\\\\", 0, 1}}).Bytes();
  const auto tokenizer = TokenizerOf(bytes);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("a\\a\xff\na", kPlain), (std::vector<int32_t>{3, 1, 2, 1}));
  EXPECT_EQ((*tokenizer)->Encode("azb", kPlain), (std::vector<int32_t>{1}));  // no token, and none for what is unknown
  EXPECT_EQ((*tokenizer)->Decode(std::vector<int32_t>{3, 2}), "a\\\xff\n");
  for (const char* wrong : {"\\x1", "\\xgg", "a\\"}) {
    const std::vector<uint8_t> damaged = VocabularyFile("rwkv", {{"a", 0, 1}, {wrong, 0, 1}}).Bytes();
    const auto refused = TokenizerOf(damaged);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.status().message().substr(0, 9), "token 1: ") << refused.status();
  }
}

}  // namespace
}  // namespace quern::text
