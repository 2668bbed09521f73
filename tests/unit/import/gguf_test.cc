// The GGUF reader: real files read, damaged ones refused with a sentence that says what and where.
#include "import/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

namespace quern {
namespace {

// Builds a GGUF file byte by byte.
struct Writer {
  std::vector<uint8_t> bytes;
  template <typename T>
  Writer& Put(T value) {
    const uint8_t* data = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), data, data + sizeof(T));
    return *this;
  }
  Writer& Text(std::string_view text) {
    Put<uint64_t>(text.size());
    bytes.insert(bytes.end(), text.begin(), text.end());
    return *this;
  }
  Writer& Header(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    return Put<uint32_t>(0x46554747).Put<uint32_t>(version).Put<uint64_t>(tensors).Put<uint64_t>(keys);
  }
  Writer& Tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    Text(name).Put<uint32_t>(dims.size());
    for (uint64_t dim : dims) Put(dim);
    return Put(type).Put(offset);
  }
  Writer& Data(size_t count) {
    bytes.resize((bytes.size() + 31) / 32 * 32 + count);
    return *this;
  }
};

std::string ErrorOf(const Writer& writer) {
  const StatusOr<GgufFile> file = GgufFile::Parse(writer.bytes);
  return file.ok() ? "no error" : std::string(file.status().message());
}

Writer Small() {
  Writer w;
  w.Header(1, 3);
  w.Text("a.int").Put<uint32_t>(4).Put<uint32_t>(7);
  w.Text("a.list").Put<uint32_t>(9).Put<uint32_t>(8).Put<uint64_t>(2).Text("x").Text("yz");
  w.Text("a.real").Put<uint32_t>(6).Put<float>(0.5f);
  w.Tensor("t", {32, 3}, 8, 0).Data(3 * 34);
  return w;
}

TEST(Gguf, ReadsWhatWasWritten) {
  const Writer w = Small();
  const StatusOr<GgufFile> file = GgufFile::Parse(w.bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file->Int("a.int"), 7);
  EXPECT_EQ(*file->Float("a.real"), 0.5);
  EXPECT_EQ(file->Strings("a.list")->at(1), "yz");
  ASSERT_NE(file->FindTensor("t"), nullptr);
  EXPECT_EQ(file->FindTensor("t")->dims, (std::vector<int64_t>{3, 32}));
  EXPECT_EQ(file->FindTensor("t")->dtype, DType::kQ8_0);
  EXPECT_EQ(file->FindTensor("t")->bytes.size(), 102u);
}

TEST(Metadata, ShowsTheFirstElementsOfLists) {
  Metadata metadata;
  metadata.PutTexts("words", std::vector<std::string>{"<s>", "a", std::string(80, 'b'), "c", "d"});
  metadata.PutInts("few", std::vector<int32_t>{7, -1});
  metadata.PutBools("none", {});
  const auto shown = [&](const char* key) { return ToString(metadata.metadata().find(key)->second); };
  EXPECT_EQ(shown("words"), "string[5]: \"<s>\", \"a\", \"" + std::string(57, 'b') + "...\", \"c\", ...");
  EXPECT_EQ(shown("few"), "i32[2]: 7, -1");
  EXPECT_EQ(shown("none"), "bool[0]");
}

TEST(Gguf, TypedGettersNameTheKey) {
  const Writer w = Small();
  const StatusOr<GgufFile> file = GgufFile::Parse(w.bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->Int("a.real").status().message(),
            "metadata key \"a.real\" is a float value, an integer that fits 64 bits expected");
  EXPECT_EQ(file->Int("b").status().message(), "metadata key \"b\" is missing");
  EXPECT_EQ(file->Floats("a.list").status().message(),
            "metadata key \"a.list\" is an array of string, floats expected");
}

TEST(Gguf, RefusesDamagedFiles) {
  EXPECT_EQ(ErrorOf(Writer().Put<uint32_t>(0x12345678)), "not a GGUF file: it does not begin with \"GGUF\"");
  EXPECT_EQ(ErrorOf(Writer().Put<uint16_t>(1)),
            "the file ends inside the GGUF header: 4 bytes wanted at offset 0, 2 left");
  EXPECT_EQ(ErrorOf(Writer().Header(0, 0, 1)), "GGUF version 1 is not supported (2 and 3 are)");
  EXPECT_EQ(ErrorOf(Writer().Header(uint64_t{1} << 60, 0)),
            "the header claims 0 keys and 1152921504606846976 tensors, but only 0 bytes follow");
  EXPECT_EQ(ErrorOf(Writer().Header(0, 1).Text("k").Put<uint32_t>(99).Put<uint64_t>(0)),
            "metadata key \"k\" has unknown type 99");
  EXPECT_EQ(ErrorOf(Writer().Header(0, 1).Text("k").Put<uint32_t>(9).Put<uint32_t>(4).Put<uint64_t>(1u << 30)),
            "the array of metadata key \"k\" claims 1073741824 elements, but only 0 bytes are left");
  EXPECT_EQ(ErrorOf(Writer().Header(0, 1).Text("k").Put<uint32_t>(9).Put<uint32_t>(9).Put<uint64_t>(0)),
            "metadata key \"k\" is an array of arrays");
  EXPECT_EQ(ErrorOf(Writer().Header(0, 1).Text("general.alignment").Put<uint32_t>(4).Put<uint32_t>(3)),
            "general.alignment is 3, a power of two expected");
  EXPECT_EQ(ErrorOf(Writer().Header(1, 0).Tensor("t", {33}, 8, 0).Data(64)),
            "tensor \"t\": rows of 33 elements are no multiple of the Q8_0 block of 32");
  EXPECT_EQ(ErrorOf(Writer().Header(1, 0).Tensor("t", {32}, 8, 0).Data(33)),
            "tensor \"t\" (34 bytes at offset 0 of the data) reaches past the end of the file");
  EXPECT_EQ(ErrorOf(Writer().Header(1, 0).Tensor("t", {32}, 8, 8).Data(64)),
            "tensor \"t\" is at offset 8, no multiple of the alignment 32");
  EXPECT_EQ(ErrorOf(Writer().Header(1, 0).Tensor("t", {uint64_t{1} << 62, 16}, 0, 0).Data(64)),
            "tensor \"t\" has an impossible dimension 16");
  EXPECT_EQ(ErrorOf(Writer().Header(2, 0).Tensor("t", {1}, 0, 0).Tensor("t", {1}, 0, 0).Data(64)),
            "tensor \"t\" occurs twice");
}

TEST(Gguf, RefusesWhatIsWrongByLittle) {
  EXPECT_EQ(ErrorOf(Writer().Header(0, 0, 0x03000000)),
            "a GGUF file of a big-endian machine: its numbers have their bytes the other way round");
  EXPECT_EQ(ErrorOf(Writer().Header(0, 0, 4)), "GGUF version 4 is not supported (2 and 3 are)");
  EXPECT_EQ(ErrorOf(Writer().Header(1, 0).Tensor("t", {1, 1, 1, 1, 1}, 0, 0).Data(64)),
            "tensor \"t\" has 5 dimensions, at most 4 expected");
  // Short enough for the file, but not from where it begins.
  EXPECT_EQ(ErrorOf(Writer().Header(1, 0).Tensor("t", {32}, 8, 32).Data(64)),
            "tensor \"t\" (34 bytes at offset 32 of the data) reaches past the end of the file");
  // Whole blocks altogether, but not in a row.
  EXPECT_EQ(ErrorOf(Writer().Header(1, 0).Tensor("t", {16, 4}, 8, 0).Data(128)),
            "tensor \"t\": rows of 16 elements are no multiple of the Q8_0 block of 32");
  // Fewer elements than bytes.
  EXPECT_EQ(
      ErrorOf(Writer().Header(0, 1).Text("k").Put<uint32_t>(9).Put<uint32_t>(4).Put<uint64_t>(2).Put<uint32_t>(0)),
      "the array of metadata key \"k\" claims 2 elements, but only 4 bytes are left");
}

TEST(Gguf, NeverCrashesOnDamage) {
  constexpr uint32_t kSeed = 20261;
  RecordProperty("seed", kSeed);
  std::mt19937 random(kSeed);
  const Writer good = Small();
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bytes = good.bytes;
    for (int edits = 1 + random() % 4; edits > 0; --edits)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    accepted += GgufFile::Parse(bytes).ok();
  }
  EXPECT_GT(accepted, 0) << "seed " << kSeed;  // some edits hit tensor data only
  EXPECT_LT(accepted, 20000) << "seed " << kSeed;
}

TEST(Gguf, ReadsRealFiles) {
  const std::filesystem::path folder = std::filesystem::path(QUERN_MODELS_DIR) / "gguf";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const StatusOr<GgufFile> file = GgufFile::Open(entry.path());
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(*file->String("general.architecture"), "llama");
    EXPECT_NE(file->FindTensor("token_embd.weight"), nullptr);
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace quern
