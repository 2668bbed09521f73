// What the writer of GGUF files writes, the reader reads: types of metadata, alignment, tensors.
#include "import/gguf_writer.h"

#include <gtest/gtest.h>

#include "import/gguf.h"

namespace quern {
namespace {

std::vector<uint8_t> Written(const Metadata& metadata, const std::vector<GgufTensor>& tensors) {
  std::string bytes = GgufHeader(metadata, tensors);
  for (const GgufTensor& tensor : tensors)
    bytes += std::string(tensor.bytes, static_cast<char>(tensor.bytes)) + GgufPadding(metadata, tensor.bytes);
  return {bytes.begin(), bytes.end()};
}

TEST(GgufWriter, ValuesKeepTheirTypes) {
  Metadata metadata;
  metadata.Add("a.i8", GgufType::kI8, int64_t{-3});
  metadata.Add("a.u16", GgufType::kU16, uint64_t{65535});
  metadata.Add("a.u64", GgufType::kU64, uint64_t{1} << 40);
  metadata.Add("a.f64", GgufType::kF64, 0.1);
  metadata.Add("a.f32", GgufType::kF32, 0.25);
  metadata.PutInt("b.natural", 7);
  metadata.PutInt("b.negative", -7);
  metadata.Put("b.flag", true);
  metadata.PutText("b.text", "t\xc3\xa4");
  metadata.PutTexts("b.texts", std::vector<std::string>{"", "two"});
  metadata.PutFloats("b.floats", std::vector<float>{1.5f, -2});
  metadata.PutInt("general.alignment", 64);
  const std::vector<GgufTensor> tensors = {{"x", {3, 32}, 8, 102}, {"y", {5}, 0, 20}};
  const std::vector<uint8_t> bytes = Written(metadata, tensors);
  const StatusOr<GgufFile> file = GgufFile::Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata().size(), metadata.metadata().size());
  for (const auto& [key, value] : metadata.metadata()) EXPECT_EQ(file->TypeOf(key), metadata.TypeOf(key)) << key;
  EXPECT_EQ(*file->Int("a.i8"), -3);
  EXPECT_EQ(*file->Int("a.u16"), 65535);
  EXPECT_EQ(*file->Int("a.u64"), int64_t{1} << 40);
  EXPECT_EQ(*file->Float("a.f64"), 0.1);
  EXPECT_EQ(file->TypeOf("b.natural"), GgufType::kU32);
  EXPECT_EQ(file->TypeOf("b.negative"), GgufType::kI32);
  EXPECT_EQ(*file->String("b.text"), "t\xc3\xa4");
  EXPECT_EQ(*file->Strings("b.texts"), (std::vector<std::string_view>{"", "two"}));
  EXPECT_EQ(*file->Floats("b.floats"), (std::vector<double>{1.5, -2}));
  const ModelTensor* x = file->FindTensor("x");
  const ModelTensor* y = file->FindTensor("y");
  ASSERT_TRUE(x != nullptr && y != nullptr);
  EXPECT_EQ(x->dims, (std::vector<int64_t>{3, 32}));
  EXPECT_EQ(x->type_name, "Q8_0");
  EXPECT_EQ(x->bytes[101], 102);
  EXPECT_EQ(y->bytes[0], 20);
  EXPECT_EQ((y->bytes.data() - bytes.data()) % 64, 0);
}

TEST(GgufWriter, WhatIsPutAgainHasItsOwnType) {
  Metadata metadata;
  metadata.Add("k", GgufType::kI64, int64_t{1});
  metadata.Put("k", uint64_t{2});
  EXPECT_EQ(metadata.TypeOf("k"), GgufType::kU32);
  Metadata copy;
  copy.Add("far", GgufType::kU8, uint64_t{9});
  metadata.PutAll(copy);
  EXPECT_EQ(metadata.TypeOf("far"), GgufType::kU8);
}

}  // namespace
}  // namespace quern
