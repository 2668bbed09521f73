#include "import/importance.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/byte_reader.h"
#include "base/mapped_file.h"
#include "import/gguf.h"
#include "import/gguf_writer.h"

namespace quern {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

// What is wrong with the numbers, or nothing.
Status CheckNumbers(std::span<const float> numbers, std::string_view what, std::string_view name) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0 && std::isfinite(numbers[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s %u of %s is %g", std::string(what), i, std::string(name), numbers[i]));
  }
  return absl::OkStatus();
}

Status CheckEntry(const ImportanceMatrix::Entry& entry, std::string_view name) {
  if (name.empty()) return absl::InvalidArgumentError("an entry has no name");
  if (entry.sums.empty() || entry.counts.empty() || entry.sums.size() % entry.counts.size() != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s has %u sums and %u counts", std::string(name), entry.sums.size(), entry.counts.size()));
  }
  QUERN_RETURN_IF_ERROR(CheckNumbers(entry.sums, "sum", name));
  return CheckNumbers(entry.counts, "count", name);
}

StatusOr<std::vector<float>> FloatsOf(const ModelTensor& tensor) {
  if (tensor.dtype != DType::kF32)
    return absl::InvalidArgumentError(absl::StrFormat("the tensor %s is %s, not F32", tensor.name, tensor.type_name));
  std::vector<float> floats(tensor.bytes.size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), tensor.bytes.data(), tensor.bytes.size());
  return floats;
}

// The key's value; 0 where the file has no such key.
StatusOr<int64_t> CountOf(const Metadata& metadata, std::string_view key) {
  if (!metadata.Has(key)) return 0;
  QUERN_ASSIGN(const int64_t count, metadata.Int(key));
  if (count < 0) return absl::InvalidArgumentError(absl::StrFormat("%s is %d", std::string(key), count));
  return count;
}

StatusOr<ImportanceMatrix> ParseGguf(std::span<const uint8_t> bytes) {
  QUERN_ASSIGN(const GgufFile file, GgufFile::Parse(bytes));
  if (const StatusOr<std::string_view> type = file.String("general.type"); !type.ok() || *type != "imatrix")
    return absl::InvalidArgumentError("general.type is not \"imatrix\": the file is no importance matrix");
  ImportanceMatrix matrix;
  QUERN_ASSIGN(matrix.chunks, CountOf(file, "imatrix.chunk_count"));
  QUERN_ASSIGN(matrix.chunk_size, CountOf(file, "imatrix.chunk_size"));
  if (file.Has("imatrix.datasets")) {
    QUERN_ASSIGN(const std::vector<std::string_view> names, file.Strings("imatrix.datasets"));
    matrix.datasets.assign(names.begin(), names.end());
  }
  for (const ModelTensor& tensor : file.tensors()) {
    for (const std::string_view suffix : {kSums, kCounts}) {
      if (!std::string_view(tensor.name).ends_with(suffix)) continue;
      ImportanceMatrix::Entry& entry = matrix.entries[tensor.name.substr(0, tensor.name.size() - suffix.size())];
      std::vector<float>& numbers = suffix == kSums ? entry.sums : entry.counts;
      QUERN_ASSIGN(numbers, FloatsOf(tensor));
      // Whole numbers, as llama.cpp reads them.
      for (float& count : entry.counts) count = std::round(count);
    }
  }
  return matrix;
}

StatusOr<std::string> ReadName(ByteReader& reader, std::string_view what) {
  const uint64_t at = reader.offset();
  QUERN_ASSIGN(const auto length, reader.Read<int32_t>(what));
  if (length < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s at offset %u has a length of %d", std::string(what), at, length));
  }
  QUERN_ASSIGN(const std::span<const uint8_t> bytes, reader.Take(static_cast<uint64_t>(length), what));
  return std::string(bytes.begin(), bytes.end());
}

StatusOr<ImportanceMatrix> ParseDat(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  ImportanceMatrix matrix;
  QUERN_ASSIGN(const auto entries, reader.Read<int32_t>("the count of entries"));
  if (entries < 1) return absl::InvalidArgumentError(absl::StrFormat("the file says that it has %d entries", entries));
  for (int32_t e = 0; e < entries; ++e) {
    QUERN_ASSIGN(const std::string name, ReadName(reader, "the name of an entry"));
    QUERN_ASSIGN(const auto calls, reader.Read<int32_t>("the calls of an entry"));
    QUERN_ASSIGN(const auto count, reader.Read<int32_t>("the count of sums of an entry"));
    if (count < 1) return absl::InvalidArgumentError(absl::StrFormat("%s has %d sums", name, count));
    QUERN_ASSIGN(const std::span<const uint8_t> sums,
                 reader.Take(static_cast<uint64_t>(count) * sizeof(float), "the sums of an entry"));
    const auto [entry, is_new] = matrix.entries.try_emplace(name);
    if (!is_new) return absl::InvalidArgumentError(absl::StrFormat("%s has two entries", name));
    // Without calls numbers are means as they are.
    entry->second.counts = {calls == 0 ? 1.0f : static_cast<float>(calls)};
    entry->second.sums.resize(static_cast<size_t>(count));
    std::memcpy(entry->second.sums.data(), sums.data(), sums.size());
  }
  if (reader.left() == 0) return matrix;
  QUERN_ASSIGN(const auto chunks, reader.Read<int32_t>("the count of chunks"));
  matrix.chunks = chunks < 0 ? 0 : chunks;
  if (reader.left() == 0) return matrix;
  QUERN_ASSIGN(std::string dataset, ReadName(reader, "the name of the text"));
  if (reader.left() > 0)
    return absl::InvalidArgumentError(absl::StrFormat("%u bytes follow the name of the text", reader.left()));
  if (!dataset.empty()) matrix.datasets.push_back(std::move(dataset));
  return matrix;
}

}  // namespace

std::vector<float> MeansOf(const ImportanceMatrix::Entry& entry) {
  std::vector<float> means = entry.sums;
  const size_t columns = entry.sums.size() / entry.counts.size();
  for (size_t i = 0; i < means.size(); ++i) {
    const float count = entry.counts[i / columns];
    means[i] = count > 0 ? means[i] / count : 1;
  }
  return means;
}

StatusOr<ImportanceMatrix> ParseImportance(std::span<const uint8_t> bytes) {
  const bool gguf = bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
  QUERN_ASSIGN(ImportanceMatrix matrix, gguf ? ParseGguf(bytes) : ParseDat(bytes));
  if (matrix.entries.empty()) return absl::InvalidArgumentError("the file has no entries");
  for (const auto& [name, entry] : matrix.entries) QUERN_RETURN_IF_ERROR(CheckEntry(entry, name));
  return matrix;
}

StatusOr<ImportanceMatrix> ReadImportance(const std::string& path) {
  QUERN_ASSIGN(const MappedFile file, MappedFile::Open(path));
  StatusOr<ImportanceMatrix> matrix = ParseImportance(file.bytes());
  if (matrix.ok()) return matrix;
  return Status(matrix.status().code(), absl::StrCat(path, ": ", matrix.status().message()));
}

std::string ImportanceFile(const ImportanceMatrix& matrix) {
  Metadata metadata;
  metadata.PutText("general.type", "imatrix");
  metadata.PutTexts("imatrix.datasets", matrix.datasets);
  metadata.PutInt("imatrix.chunk_count", matrix.chunks);
  metadata.PutInt("imatrix.chunk_size", matrix.chunk_size);
  std::vector<GgufTensor> tensors;
  std::vector<std::span<const float>> numbers;
  const auto add = [&](std::string name, std::vector<int64_t> dims, std::span<const float> of) {
    // As ggml writes extents: outer ones of 1 are none.
    if (dims[0] == 1) dims.erase(dims.begin());
    tensors.push_back({std::move(name), std::move(dims), *GgmlTypeOf("F32"), of.size_bytes()});
    numbers.push_back(of);
  };
  for (const auto& [name, entry] : matrix.entries) {
    const auto matrices = static_cast<int64_t>(entry.counts.size());
    const auto columns = static_cast<int64_t>(entry.sums.size()) / matrices;
    add(name + std::string(kSums), {matrices, columns}, entry.sums);
    add(name + std::string(kCounts), {matrices, 1}, entry.counts);
  }
  std::string file = GgufHeader(metadata, tensors);
  for (size_t t = 0; t < tensors.size(); ++t) {
    file.append(reinterpret_cast<const char*>(numbers[t].data()), numbers[t].size_bytes());
    file += GgufPadding(metadata, tensors[t].bytes);
  }
  return file;
}

}  // namespace quern
