// Compiled vocabularies in C against the tokenizers that they were compiled from: words, ids, pieces and ends.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

extern "C" {
#include "kit/tables.h"
}
#include "import/gguf.h"
#include "quern/kit.h"
#include "support/vocabulary_file.h"
#include "text/compile_vocabulary.h"
#include "text/folder_vocabulary.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace quern::text {
namespace {

using Ids = std::vector<int32_t>;
using Made = std::unique_ptr<const Tokenizer>;

StatusOr<Made> OfBytes(std::span<const uint8_t> bytes) {
  StatusOr<GgufFile> file = GgufFile::Parse(bytes);
  if (!file.ok()) return file.status();
  return Tokenizer::FromMetadata(std::make_shared<const GgufFile>(*std::move(file)));
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// A compiled vocabulary, at an address of its own.
class Kit {
 public:
  explicit Kit(const std::string& bytes) : words_(bytes.size() / 8 + 1) {
    std::memcpy(words_.data(), bytes.data(), bytes.size());
  }
  const quern_vocabulary* get() const { return reinterpret_cast<const quern_vocabulary*>(words_.data()); }
  Ids Encode(std::string_view text, int32_t flags) const {
    Ids ids(text.size() + 3);
    const int64_t count = quern_encode(get(), text.data(), text.size(), flags, ids.data(), std::ssize(ids));
    EXPECT_GE(count, 0);
    EXPECT_LE(count, std::ssize(ids));
    ids.resize(static_cast<size_t>(std::max<int64_t>(count, 0)));
    return ids;
  }
  std::string Piece(int32_t id, bool special) const {
    const char* text = nullptr;
    const int64_t size = quern_piece(get(), id, special, &text);
    return std::string(text, static_cast<size_t>(size));
  }

 private:
  std::vector<uint64_t> words_;
};

// Characters of every kind that rules tell apart, whole and broken.
constexpr std::string_view kParts[] = {"a",
                                       "B",
                                       "the ",
                                       " Word",
                                       "'s",
                                       "'LL",
                                       "'\xc5\xbf",
                                       " ",
                                       "  ",
                                       "\t",
                                       "\n",
                                       "\r\n",
                                       "\x0b",
                                       "\xc2\x85",
                                       "\xc2\xa0",
                                       "\xe3\x80\x80",
                                       "1",
                                       "23",
                                       "4567",
                                       "\xd9\xa3",
                                       "!",
                                       "?!",
                                       "/",
                                       "(",
                                       "$",
                                       "<=",
                                       "\xe2\x80\x99",
                                       "\xc3\xa9",
                                       "\xc3\x89",
                                       "e\xcc\x81",
                                       "\xc7\x85",
                                       "\xca\xb0",
                                       "\xe4\xb8\xad\xe6\x96\x87",
                                       "\xe3\x81\x82",
                                       "\xea\xb0\x80",
                                       "\xd7\x90",
                                       "\xe0\xa4\x95\xe0\xa4\xbf",
                                       "\xf0\x9f\x98\x80",
                                       "\xf0\x90\x90\x80",
                                       "\xf0\xa0\x80\x80",
                                       "\xe2\x96\x81",
                                       "\xff",
                                       "\xc3",
                                       "\xe2\x82",
                                       "\xf0\x9f",
                                       "\xed\xa0\x80",
                                       "\xc0\x80",
                                       "\xf4\x90\x80\x80",
                                       "</s>",
                                       "<s>",
                                       "<|endoftext|>",
                                       "<|im_start|>",
                                       "<unk>",
                                       "<|eot_id|>"};

std::string RandomText(std::mt19937& random) {
  std::string text;
  for (uint32_t left = random() % 24; left > 0; --left) {
    const std::string_view part = kParts[random() % std::size(kParts)];
    for (uint32_t times = random() % 8 == 0 ? random() % 5 : 1; times > 0; --times) text += part;
  }
  return text;
}

// Everything that a program can ask of both.
void ExpectAlike(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  const StatusOr<std::string> compiled = CompileVocabulary(tokenizer);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const StatusOr<std::string> again = CompileVocabulary(tokenizer);
  EXPECT_TRUE(*compiled == *again) << "the second time byte "
                                   << std::mismatch(compiled->begin(), compiled->end(), again->begin()).first -
                                          compiled->begin()
                                   << " of " << compiled->size() << " is another";
  const Kit kit(*compiled);
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  EXPECT_EQ(quern_vocabulary_size(kit.get()), vocabulary.size());
  EXPECT_EQ(quern_vocabulary_begin(kit.get()), vocabulary.begin());
  EXPECT_EQ(quern_vocabulary_end(kit.get()), vocabulary.end());
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    for (const bool special : {false, true}) ASSERT_EQ(kit.Piece(id, special), tokenizer.Piece(id, special)) << id;
    ASSERT_EQ(quern_vocabulary_is_end(kit.get(), id) != 0, vocabulary.IsEnd(id)) << id;
  }
  for (const int32_t id : {-1, vocabulary.size(), INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(kit.Piece(id, true), "");
    EXPECT_EQ(quern_vocabulary_is_end(kit.get(), id), 0);
  }
  for (const std::string& text : texts) {
    for (const int32_t flags : {0, 1, 2, 3}) {
      const Ids want = tokenizer.Encode(
          text, {.add_special = (flags & QUERN_TEXT_BEGIN) != 0, .parse_special = (flags & QUERN_TEXT_SPECIAL) != 0});
      ASSERT_EQ(kit.Encode(text, flags), want) << "\"" << text << "\", flags " << flags;
    }
  }
}

std::vector<std::string> RandomTexts(uint32_t seed, int count) {
  std::mt19937 random(seed);
  std::vector<std::string> texts = {"", " ", "\n"};
  for (int i = 0; i < count; ++i) texts.push_back(RandomText(random));
  return texts;
}

TEST(Kit, EncodesTheVectorsOfEveryVocabulary) {
  const std::filesystem::path folder = std::filesystem::path(QUERN_MODELS_DIR) / "vocab";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    SCOPED_TRACE(entry.path().string());
    StatusOr<GgufFile> file = GgufFile::Open(entry.path());
    ASSERT_TRUE(file.ok()) << file.status();
    const auto tokenizer = Tokenizer::FromMetadata(std::make_shared<const GgufFile>(*std::move(file)));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    if (entry.path().string().find("bert-bge") != std::string::npos) continue;
    std::vector<std::string> texts = RandomTexts(7, 400);
    const std::string cases = ReadAll(entry.path().string() + ".inp"), marker = "\n__ggml_vocab_test__\n";
    for (size_t at = 0; at < cases.size();) {
      const size_t end = std::min(cases.find(marker, at), cases.size());
      texts.push_back(cases.substr(at, end - at));
      at = end + marker.size();
    }
    ASSERT_GT(texts.size(), 430u);
    texts.push_back(cases);
    ExpectAlike(**tokenizer, texts);
    ++files;
  }
  EXPECT_GE(files, 4);
}

TEST(Kit, EncodesLikeTokenizersOfFolders) {
  int compiled = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(QUERN_SOURCE_DIR) + "/tests/golden/tokenizers")) {
    SCOPED_TRACE(entry.path().string());
    const StatusOr<std::shared_ptr<const Metadata>> metadata = OpenVocabulary(entry.path());
    ASSERT_TRUE(metadata.ok()) << metadata.status();
    const auto tokenizer = Tokenizer::FromMetadata(*metadata);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    if (entry.path().filename() == "bert") continue;
    ExpectAlike(**tokenizer, RandomTexts(11, 400));
    ++compiled;
  }
  EXPECT_GE(compiled, 8);
}

TEST(Kit, RefusesOtherKindsByName) {
  const std::pair<const char*, const char*> files[] = {{"t5.gguf", "t5"}, {"rwkv.gguf", "rwkv"}};
  for (const auto& [file, kind] : files) {
    StatusOr<GgufFile> opened = GgufFile::Open(std::string(QUERN_SOURCE_DIR) + "/tests/golden/vocabularies/" + file);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto tokenizer = Tokenizer::FromMetadata(std::make_shared<const GgufFile>(*std::move(opened)));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ(CompileVocabulary(**tokenizer).status().message(),
              "tokenizer model \"" + std::string(kind) +
                  "\" does not go into an object: the library of text in C has \"llama\" (SentencePiece) and "
                  "\"gpt2\" (byte-level BPE)");
  }
  const std::vector<uint8_t> bytes =
      VocabularyFile("bert", {{"[UNK]", 0, 2}, {"\u2581he"}}).Number("tokenizer.ggml.unknown_token_id", 0).Bytes();
  const StatusOr<Made> made = OfBytes(bytes);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(
      std::string(CompileVocabulary(**made).status().message()).starts_with("tokenizer model \"bert\" does not"));
}

VocabularyFile Bpe(std::string_view rule, const std::vector<std::string_view>& merges) {
  return VocabularyFile(
             "gpt2",
             {{"a"}, {"b"}, {"ab"}, {"\u0120"}, {"\u00c3"}, {"<|end|>", 0, 3}, {"<tool>", 0, 4}, {"abc"}, {"?", 0, 2}})
      .Text("tokenizer.ggml.pre", rule)
      .Texts("tokenizer.ggml.merges", merges);
}

TEST(Kit, MergesWhatIsNoToken) {
  const std::vector<std::string> texts = {"abab ab", "abc", "cab", "b a<|end|>ab<tool>", "\xc3\xa9 a", "aabb?", "c c"};
  // "b c" and "\u0120 a" are no tokens, "ab c" is made of one that is; a merge of three texts, and one that comes
  // twice.
  for (const char* rule : {"gpt-2", "llama-bpe"}) {
    const std::vector<uint8_t> bytes = Bpe(rule, {"\u0120 a", "b c", "a b", "ab c", "a b c", "a b", "x y"}).Bytes();
    const StatusOr<Made> tokenizer = OfBytes(bytes);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    ExpectAlike(**tokenizer, texts);
  }
  const std::vector<uint8_t> spm = VocabularyFile("llama", {{"<unk>", 0, 2},
                                                            {"<s>", 0, 3},
                                                            {"</s>", 0, 3},
                                                            {"a", -1},
                                                            {"b", -2},
                                                            {"ab", -3},
                                                            {"\u2581", -1},
                                                            {"\u2581a", -3},
                                                            {"<0x63>", 0, 6},
                                                            {"aa", -3},
                                                            {"<x>", 0, 4},
                                                            {"a", -9}})
                                       .Number("tokenizer.ggml.bos_token_id", 1)
                                       .Number("tokenizer.ggml.eos_token_id", 2)
                                       .Flag("tokenizer.ggml.add_eos_token", true)
                                       .Bytes();
  const StatusOr<Made> tokenizer = OfBytes(spm);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ExpectAlike(**tokenizer, {"aaab", "a aa ab", "cab</s>ab<x>a", "\xff\xe2\x96", "<x><x>b", " a", "aaaaaaaaab"});
}

TEST(Kit, CountsWhatHasNoRoom) {
  const std::vector<uint8_t> bytes = Bpe("gpt-2", {"a b"}).Bytes();
  const StatusOr<Made> tokenizer = OfBytes(bytes);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const Kit kit(*CompileVocabulary(**tokenizer));
  Ids ids(3, -7);
  EXPECT_EQ(quern_encode(kit.get(), "aaba", 4, 0, ids.data(), 2), 3);
  EXPECT_EQ(ids, (Ids{0, 2, -7}));
  EXPECT_EQ(quern_encode(kit.get(), "aaba", 4, 0, nullptr, 0), 3);
  EXPECT_EQ(quern_encode(kit.get(), "aaba", QUERN_TEXT_MOST + 1, 0, nullptr, 0), QUERN_TEXT_LONG);
}

// Every rule of splitting, on the texts of tests/golden/splits.txt and on random ones.
TEST(Kit, SplitsLikeEveryRule) {
  std::ifstream golden(std::string(QUERN_SOURCE_DIR) + "/tests/golden/splits.txt");
  std::string line;
  ASSERT_TRUE(std::getline(golden, line));
  std::vector<std::string> texts = nlohmann::json::parse(line);
  const std::vector<std::string> drawn = RandomTexts(13, 600);
  texts.insert(texts.end(), drawn.begin(), drawn.end());
  texts.push_back(std::string(3000, ' ') + "x" + std::string(3000, 'A') + std::string(999, '7'));
  std::set<const SplitRule*> seen;
  for (const std::string_view name : SplitRuleNames()) {
    const SplitRule* rule = *FindSplitRule(name);
    if (!seen.insert(rule).second) continue;
    SCOPED_TRACE(std::string(name));
    const std::vector<uint8_t> bytes = Bpe(name, {"a b"}).Bytes();
    const StatusOr<Made> tokenizer = OfBytes(bytes);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const StatusOr<std::string> compiled = CompileVocabulary(**tokenizer);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const Kit kit(*compiled);
    const StatusOr<PreTokenizer> splitter = PreTokenizer::Make(*rule);
    ASSERT_TRUE(splitter.ok()) << splitter.status();
    for (const std::string& text : texts) {
      quern_kit_work work = {};
      const int64_t words =
          quern_kit_split(kit.get(), reinterpret_cast<const uint8_t*>(text.data()), text.size(), &work);
      const auto* ends = static_cast<const uint32_t*>(work.ends.data);
      EXPECT_EQ(std::vector<size_t>(ends, ends + words), splitter->Split(text)) << '"' << text << '"';
      for (quern_kit_room* room : {&work.classes, &work.starts, &work.ends, &work.more_ends}) free(room->data);
    }
  }
  EXPECT_GE(seen.size(), 18u);
}

}  // namespace
}  // namespace quern::text
