// Files of values: both forms come back, and what is damaged is an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "import/npy.h"
#include "import/safetensors.h"

namespace quern {
namespace {

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

FileTensor Tensor(DType dtype, std::vector<int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  FileTensor tensor{dtype, std::move(shape), {}};
  for (int64_t b = 0; b < elements * ScalarBytes(dtype); ++b) tensor.bytes.push_back(static_cast<uint8_t>(b * 7 + 1));
  return tensor;
}

void ExpectSame(const FileTensor& a, const FileTensor& b) {
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.bytes, b.bytes);
}

// What numpy.save writes of numpy.array([[1, 2, 3], [4, 5, 6]], dtype=numpy.float32).
std::string OfNumpy() {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.resize(117, ' ');
  std::string file("\x93NUMPY\1\0\x76\0", 10);
  file += header + "\n";
  for (const float value : {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}) file.append(reinterpret_cast<const char*>(&value), 4);
  return file;
}

TEST(Npy, IsReadAndWritten) {
  const StatusOr<FileTensor> read = ParseNpy(Bytes(OfNumpy()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->dtype, DType::kF32);
  EXPECT_EQ(read->shape, (std::vector<int64_t>{2, 3}));
  float last = 0;
  std::memcpy(&last, &read->bytes[20], 4);
  EXPECT_EQ(last, 6);
  for (int d = 0; d < kScalarDTypeCount; ++d) {
    const DType dtype = static_cast<DType>(d);
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {5}, {2, 3}, {3, 0, 2}}) {
      const FileTensor tensor = Tensor(dtype, shape);
      const StatusOr<std::string> file = PrintNpy(tensor);
      if (dtype == DType::kBF16) {
        EXPECT_EQ(file.status().code(), absl::StatusCode::kUnimplemented);
        continue;
      }
      ASSERT_TRUE(file.ok()) << file.status();
      EXPECT_EQ((file->size() - tensor.bytes.size()) % 64, 0u);
      const StatusOr<FileTensor> again = ParseNpy(Bytes(*file));
      ASSERT_TRUE(again.ok()) << again.status();
      ExpectSame(*again, tensor);
    }
  }
}

std::string NpyError(const std::string& from, const std::string& to) {
  std::string file = OfNumpy();
  file.replace(file.find(from), from.size(), to);
  return std::string(ParseNpy(Bytes(file)).status().message());
}

TEST(Npy, SaysWhatIsWrong) {
  EXPECT_EQ(NpyError("NUMPY", "NUMPI"), "byte 0: no .npy file");
  EXPECT_EQ(NpyError("<f4", ">f4"), "an array of dtype >f4");
  EXPECT_EQ(NpyError("<f4", "<m8"), "an array of dtype <m8");
  EXPECT_EQ(NpyError("False", "True "), "an array in Fortran order");
  EXPECT_EQ(NpyError("(2, 3)", "(2, 4)"), "byte 128: the data does not have the bytes of the shape");
  EXPECT_EQ(NpyError("(2, 3)", "(2, 2)"), "byte 128: the data does not have the bytes of the shape");
  EXPECT_EQ(NpyError("(2, 3)", "(2, x)"), "byte 10: the header's shape is none");
  EXPECT_EQ(ParseNpy(Bytes(OfNumpy().substr(0, 60))).status().message(), "byte 8: the header is cut short");
}

FileTensors Some() {
  return {{"a", Tensor(DType::kBF16, {2, 3})}, {"b.weight", Tensor(DType::kI64, {})}, {"c", Tensor(DType::kBool, {0})}};
}

TEST(Safetensors, AreReadAndWritten) {
  const StatusOr<FileTensors> again = ParseSafetensors(Bytes(PrintSafetensors(Some())));
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->size(), 3u);
  for (const auto& [name, tensor] : Some()) ExpectSame(again->at(name), tensor);
}

std::string HeaderError(const std::string& header) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  return std::string(ParseSafetensors(Bytes(file + header + "12345678")).status().message());
}

TEST(Safetensors, SayWhatIsWrong) {
  EXPECT_EQ(HeaderError(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})"), "");
  EXPECT_EQ(HeaderError(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 9]}})"),
            "tensor a: it lies outside of the file");
  EXPECT_EQ(HeaderError(R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})"),
            "tensor a: its data does not have the bytes of the shape");
  EXPECT_EQ(HeaderError(R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 8]}})"),
            "tensor a: its data does not have the bytes of the shape");
  EXPECT_EQ(HeaderError(R"({"a": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}})"),
            "tensor a is of dtype F8_E4M3");
  EXPECT_EQ(HeaderError(R"({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})"),
            "tensor a: a size is no number");
  EXPECT_EQ(HeaderError(R"({"a": 3})"), "tensor a: dtype, shape and data_offsets expected");
  EXPECT_EQ(HeaderError(R"({"a": )"), "byte 8: the header is no object of JSON");
}

TEST(TensorFiles, DamageNeverCrashes) {
  std::mt19937 random(481);
  for (int i = 0; i < 20000; ++i) {
    const bool npy = random() % 2 == 0;
    std::string file = npy ? OfNumpy() : PrintSafetensors(Some());
    for (int edits = 1 + random() % 4; edits > 0; --edits) file[random() % file.size()] = static_cast<char>(random());
    if (random() % 4 == 0) file.resize(random() % file.size());
    const Status status = npy ? ParseNpy(Bytes(file)).status() : ParseSafetensors(Bytes(file)).status();
    if (!status.ok()) EXPECT_FALSE(status.message().empty());
  }
}

}  // namespace
}  // namespace quern
