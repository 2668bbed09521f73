#include "import/gguf.h"

#include <algorithm>
#include <bit>

#include "base/block_format.h"
#include "base/byte_reader.h"
#include "import/gguf_value.h"

namespace quern {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read as they lie");

constexpr uint64_t kMaxNameBytes = 65535;

// A ggml type with its block. The table has those that are no block format of ours, so that files holding types we do
// not compute with can still be inspected.
struct GgmlTypeRow {
  uint32_t id;
  const char* name;
  int elements, bytes;
  std::optional<DType> dtype;
};
constexpr GgmlTypeRow kGgmlTypes[] = {
    {0, "F32", 1, 4, DType::kF32},  {1, "F16", 1, 2, DType::kF16},  {9, "Q8_1", 32, 36, {}},
    {24, "I8", 1, 1, DType::kI8},   {25, "I16", 1, 2, DType::kI16}, {26, "I32", 1, 4, DType::kI32},
    {27, "I64", 1, 8, DType::kI64}, {28, "F64", 1, 8, DType::kF64}, {30, "BF16", 1, 2, DType::kBF16},
};

std::optional<GgmlTypeRow> FindGgmlType(uint32_t id) {
  for (const GgmlTypeRow& row : kGgmlTypes) {
    if (row.id == id) return row;
  }
  for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) {
    const BlockFormat& format = FormatOf(static_cast<DType>(d));
    if (format.gguf_type != id) continue;
    return GgmlTypeRow{id, format.gguf_name, format.elements, format.bytes, static_cast<DType>(d)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint32_t> GgmlTypeOf(std::string_view name) {
  for (const GgmlTypeRow& row : kGgmlTypes) {
    if (name == row.name) return row.id;
  }
  for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) {
    const BlockFormat& format = FormatOf(static_cast<DType>(d));
    if (format.gguf_type.has_value() && name == format.gguf_name) return format.gguf_type;
  }
  return std::nullopt;
}

StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  GgufFile file;
  QUERN_ASSIGN(const std::span<const uint8_t> bytes, file.Map(path));
  const Status status = file.Read(bytes);
  if (!status.ok()) {
    return Status(status.code(), absl::StrFormat("%s: %s", path, std::string(status.message())));
  }
  return file;
}

StatusOr<GgufFile> GgufFile::Parse(std::span<const uint8_t> bytes) {
  GgufFile file;
  file.Refer(bytes);
  QUERN_RETURN_IF_ERROR(file.Read(bytes));
  return file;
}

Status GgufFile::Read(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return absl::InvalidArgumentError("the file is empty");
  ByteReader reader(bytes);
  QUERN_ASSIGN(const uint32_t magic, reader.Read<uint32_t>("the GGUF header"));
  if (magic != 0x46554747) return absl::InvalidArgumentError("not a GGUF file: it does not begin with \"GGUF\"");
  QUERN_ASSIGN(version_, reader.Read<uint32_t>("the GGUF header"));
  if (version_ == 0x02000000 || version_ == 0x03000000) {
    return absl::UnimplementedError(
        "a GGUF file of a big-endian machine: its numbers have their bytes the other way round");
  }
  if (version_ != 2 && version_ != 3) {
    return absl::InvalidArgumentError(absl::StrFormat("GGUF version %u is not supported (2 and 3 are)", version_));
  }
  QUERN_ASSIGN(const uint64_t tensor_count, reader.Read<uint64_t>("the GGUF header"));
  QUERN_ASSIGN(const uint64_t key_count, reader.Read<uint64_t>("the GGUF header"));
  // A key takes at least 13 bytes (length, type, one byte of value), a tensor 32.
  if (key_count > reader.left() / 13 || tensor_count > reader.left() / 32) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the header claims %u keys and %u tensors, but only %u bytes follow", key_count, tensor_count, reader.left()));
  }
  for (uint64_t i = 0; i < key_count; ++i) {
    QUERN_ASSIGN(const std::string_view key, ReadGgufString(reader, "a metadata key", kMaxNameBytes));
    QUERN_ASSIGN(const GgufType type, ReadGgufType(reader, key));
    QUERN_ASSIGN(const GgufValue value, ReadGgufValue(reader, type, key));
    if (!Add(key, type, value)) {
      return absl::InvalidArgumentError(absl::StrFormat("metadata key \"%s\" occurs twice", std::string(key)));
    }
  }
  if (Has("general.alignment")) {
    QUERN_ASSIGN(const int64_t alignment, Int("general.alignment"));
    if (alignment < 1 || alignment > (1 << 20) || !std::has_single_bit(static_cast<uint64_t>(alignment))) {
      return absl::InvalidArgumentError(absl::StrFormat("general.alignment is %d, a power of two expected", alignment));
    }
    alignment_ = alignment;
  }

  struct Place {
    uint64_t offset, size;
  };
  std::vector<Place> places;
  std::vector<ModelTensor> tensors;
  for (uint64_t i = 0; i < tensor_count; ++i) {
    QUERN_ASSIGN(const std::string_view name, ReadGgufString(reader, "a tensor name", kMaxNameBytes));
    ModelTensor tensor;
    tensor.name = std::string(name);
    QUERN_ASSIGN(const uint32_t rank, reader.Read<uint32_t>("a tensor's rank"));
    if (rank > 4) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tensor \"%s\" has %u dimensions, at most 4 expected", tensor.name, rank));
    }
    uint64_t elements = 1;
    for (uint32_t d = 0; d < rank; ++d) {
      QUERN_ASSIGN(const uint64_t dim, reader.Read<uint64_t>("a tensor's dimensions"));
      if (dim == 0 || dim > INT64_MAX || __builtin_mul_overflow(elements, dim, &elements) || elements > INT64_MAX) {
        return absl::InvalidArgumentError(
            absl::StrFormat("tensor \"%s\" has an impossible dimension %u", tensor.name, dim));
      }
      tensor.dims.insert(tensor.dims.begin(), static_cast<int64_t>(dim));
    }
    QUERN_ASSIGN(const uint32_t type_id, reader.Read<uint32_t>("a tensor's type"));
    const std::optional<GgmlTypeRow> type = FindGgmlType(type_id);
    if (!type) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tensor \"%s\" has unknown ggml type %u", tensor.name, type_id));
    }
    const int64_t row = tensor.dims.empty() ? 1 : tensor.dims.back();
    if (row % type->elements != 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tensor \"%s\": rows of %d elements are no multiple of the %s block of %d", tensor.name, row,
                          type->name, type->elements));
    }
    tensor.type_name = type->name;
    tensor.dtype = type->dtype;
    Place place;
    QUERN_ASSIGN(place.offset, reader.Read<uint64_t>("a tensor's offset"));
    if (__builtin_mul_overflow(elements / type->elements, type->bytes, &place.size)) {
      return absl::InvalidArgumentError(absl::StrFormat("tensor \"%s\" is larger than any file", tensor.name));
    }
    if (place.offset % alignment_ != 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "tensor \"%s\" is at offset %u, no multiple of the alignment %u", tensor.name, place.offset, alignment_));
    }
    tensors.push_back(std::move(tensor));
    places.push_back(place);
  }

  SetKind(absl::StrFormat("GGUF v%u", version_));
  const uint64_t data_start = (reader.offset() + alignment_ - 1) / alignment_ * alignment_;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t available = data_start <= bytes.size() ? bytes.size() - data_start : 0;
    if (places[i].offset > available || places[i].size > available - places[i].offset) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tensor \"%s\" (%u bytes at offset %u of the data) reaches past the end of the file",
                          tensors[i].name, places[i].size, places[i].offset));
    }
    tensors[i].bytes = bytes.subspan(data_start + places[i].offset, places[i].size);
    std::string name = tensors[i].name;
    if (!AddTensor(std::move(tensors[i])))
      return absl::InvalidArgumentError(absl::StrFormat("tensor \"%s\" occurs twice", name));
  }
  return absl::OkStatus();
}

}  // namespace quern
