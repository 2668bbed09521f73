// Importance matrices: what llama.cpp wrote is read in both forms and written again, and what is damaged is refused.
#include "import/importance.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "support/gguf_bytes.h"

namespace quern {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Recorded(const std::string& name) {
  std::ifstream file(QUERN_SOURCE_DIR "/tests/golden/importance/" + name, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

Bytes Floats(const std::vector<float>& floats) {
  Bytes bytes(floats.size() * sizeof(float));
  std::memcpy(bytes.data(), floats.data(), bytes.size());
  return bytes;
}

TEST(Importance, BothFormsOfLlamaCppSayTheSame) {
  const StatusOr<ImportanceMatrix> gguf = ParseImportance(Recorded("addition.gguf")),
                                   dat = ParseImportance(Recorded("addition.dat"));
  ASSERT_TRUE(gguf.ok() && dat.ok()) << gguf.status() << dat.status();
  EXPECT_EQ(gguf->chunk_size, 48);
  EXPECT_EQ(gguf->chunks, dat->chunks);
  EXPECT_GT(gguf->chunks, 1);
  EXPECT_EQ(gguf->datasets, (std::vector<std::string>{"addition.txt"}));
  EXPECT_EQ(dat->datasets, gguf->datasets);
  ASSERT_EQ(gguf->entries.size(), dat->entries.size());
  EXPECT_GT(gguf->entries.size(), 7u);
  for (const auto& [name, entry] : gguf->entries) {
    const auto other = dat->entries.find(name);
    ASSERT_NE(other, dat->entries.end()) << name;
    const std::vector<float> a = MeansOf(entry), b = MeansOf(other->second);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6f * a[i]) << name << " " << i;
  }
}

TEST(Importance, IsWrittenAsLlamaCppWritesIt) {
  for (const char* name : {"addition.gguf", "llama-moe4x2.gguf"}) {
    const Bytes recorded = Recorded(name);
    const StatusOr<ImportanceMatrix> matrix = ParseImportance(recorded);
    ASSERT_TRUE(matrix.ok()) << matrix.status();
    const std::string written = ImportanceFile(*matrix);
    // The same but for the order of metadata, which is in front of the tensors.
    EXPECT_EQ(written.size(), recorded.size());
    const size_t at = written.find("blk.");
    EXPECT_TRUE(std::equal(written.begin() + static_cast<int64_t>(at), written.end(),
                           recorded.begin() + static_cast<int64_t>(at),
                           [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }))
        << name;
  }
}

TEST(Importance, MeansAreOfEachMatrix) {
  const ImportanceMatrix::Entry entry{{2, 4, 6, 8, 9, 3}, {2, 0, 3}};
  EXPECT_EQ(MeansOf(entry), (std::vector<float>{1, 2, 1, 1, 3, 1}));
  EXPECT_EQ(MeansOf({{2, 4, 6, 8}, {2}}), (std::vector<float>{1, 2, 3, 4}));
}

// A GGUF file of one weight's sums and counts.
Bytes FileOf(const std::vector<float>& sums, const std::vector<float>& counts, std::string_view type = "imatrix") {
  support::GgufBytes file;
  file.Put("general.type", type);
  if (!sums.empty()) file.AddTensor("a.in_sum2", {sums.size()}, 0, Floats(sums));
  if (!counts.empty()) file.AddTensor("a.counts", {1, counts.size()}, 0, Floats(counts));
  return file.Build();
}

std::string ErrorOf(const Bytes& bytes) {
  const StatusOr<ImportanceMatrix> matrix = ParseImportance(bytes);
  return matrix.ok() ? "" : std::string(matrix.status().message());
}

TEST(Importance, WhatIsNoMatrixIsRefused) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ErrorOf(FileOf({1, 2, 3, 4}, {1, 2})), "");
  EXPECT_EQ(ErrorOf(FileOf({1, 2, 3}, {1, 2})), "a has 3 sums and 2 counts");
  EXPECT_EQ(ErrorOf(FileOf({1, 2, 3}, {})), "a has 3 sums and 0 counts");
  EXPECT_EQ(ErrorOf(FileOf({}, {1})), "a has 0 sums and 1 counts");
  EXPECT_EQ(ErrorOf(FileOf({1, -2}, {1})), "sum 1 of a is -2");
  EXPECT_EQ(ErrorOf(FileOf({1, kNaN}, {1})), "sum 1 of a is nan");
  EXPECT_EQ(ErrorOf(FileOf({kInf, 2}, {1})), "sum 0 of a is inf");
  EXPECT_EQ(ErrorOf(FileOf({1, 2}, {-1})), "count 0 of a is -1");
  EXPECT_EQ(ErrorOf(FileOf({1, 2}, {kNaN})), "count 0 of a is nan");
  EXPECT_EQ(ErrorOf(FileOf({1, 2}, {1}, "model")), "general.type is not \"imatrix\": the file is no importance matrix");
  EXPECT_EQ(ErrorOf(FileOf({}, {})), "the file has no entries");
  support::GgufBytes halves, nameless;
  halves.Put("general.type", std::string_view("imatrix"));
  halves.AddTensor("a.in_sum2", {2}, 1, Bytes(4));
  EXPECT_EQ(ErrorOf(halves.Build()), "the tensor a.in_sum2 is F16, not F32");
  nameless.Put("general.type", std::string_view("imatrix"));
  nameless.AddTensor(".in_sum2", {1}, 0, Bytes(4));
  nameless.AddTensor(".counts", {1}, 0, Bytes(4));
  EXPECT_EQ(ErrorOf(nameless.Build()), "an entry has no name");
}

// An entry of the older form.
Bytes DatOf(int32_t entries, int32_t length, std::string_view name, int32_t calls, int32_t count,
            const std::vector<float>& sums, int times = 1) {
  Bytes bytes;
  const auto put = [&](int32_t number) {
    const auto raw = std::bit_cast<std::array<uint8_t, 4>>(number);
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  };
  put(entries);
  for (int t = 0; t < times; ++t) {
    put(length);
    bytes.insert(bytes.end(), name.begin(), name.end());
    put(calls);
    put(count);
    const Bytes floats = Floats(sums);
    bytes.insert(bytes.end(), floats.begin(), floats.end());
  }
  return bytes;
}

TEST(Importance, DamagedDatFilesAreRefused) {
  EXPECT_EQ(ErrorOf(DatOf(1, 1, "a", 2, 2, {1, 2})), "");
  EXPECT_EQ(ErrorOf(DatOf(0, 1, "a", 2, 2, {1, 2})), "the file says that it has 0 entries");
  EXPECT_EQ(ErrorOf(DatOf(-1, 1, "a", 2, 2, {1, 2})), "the file says that it has -1 entries");
  EXPECT_EQ(ErrorOf(DatOf(2, 1, "a", 2, 2, {1, 2}, 2)), "a has two entries");
  EXPECT_EQ(ErrorOf(DatOf(1, -5, "a", 2, 2, {1, 2})), "the name of an entry at offset 4 has a length of -5");
  EXPECT_EQ(ErrorOf(DatOf(1, 0, "", 2, 2, {1, 2})), "an entry has no name");
  EXPECT_EQ(ErrorOf(DatOf(1, 1, "a", -2, 2, {1, 2})), "count 0 of a is -2");
  EXPECT_EQ(ErrorOf(DatOf(1, 1, "a", 2, 0, {})), "a has 0 sums");
  EXPECT_EQ(ErrorOf(DatOf(1, 1, "a", 2, -1, {1, 2})), "a has -1 sums");
  EXPECT_EQ(ErrorOf(DatOf(1, 1, "a", 2, 2, {1, -2})), "sum 1 of a is -2");
  EXPECT_NE(ErrorOf(DatOf(1, 1, "a", 2, 2'000'000'000, {1, 2})).find("the file ends inside the sums of an entry"),
            std::string::npos);
  // Without calls numbers are means.
  const StatusOr<ImportanceMatrix> means = ParseImportance(DatOf(1, 1, "a", 0, 2, {3, 5}));
  ASSERT_TRUE(means.ok()) << means.status();
  EXPECT_EQ(MeansOf(means->entries.at("a")), (std::vector<float>{3, 5}));
}

// Cut anywhere, a file is refused or has no part of an entry.
TEST(Importance, CutFiles) {
  for (const char* name : {"addition.dat", "addition.gguf"}) {
    const Bytes whole = Recorded(name);
    const size_t entries = ParseImportance(whole)->entries.size();
    int read = 0;
    for (size_t size = 0; size < whole.size(); size += 1 + size % 7) {
      const StatusOr<ImportanceMatrix> matrix = ParseImportance(std::span(whole).first(size));
      if (!matrix.ok()) continue;
      ++read;
      EXPECT_EQ(matrix->entries.size(), entries) << name << " cut at " << size;
    }
    EXPECT_LT(read, 30) << name;
  }
}

}  // namespace
}  // namespace quern
