#include "import/gguf.h"

#include <algorithm>
#include <bit>

#include "base/block_format.h"
#include "base/byte_reader.h"

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
    {0, "F32", 1, 4, DType::kF32},    {1, "F16", 1, 2, DType::kF16},  {9, "Q8_1", 32, 36, {}},
    {16, "IQ2_XXS", 256, 66, {}},     {17, "IQ2_XS", 256, 74, {}},    {18, "IQ3_XXS", 256, 98, {}},
    {19, "IQ1_S", 256, 50, {}},       {21, "IQ3_S", 256, 110, {}},    {22, "IQ2_S", 256, 82, {}},
    {24, "I8", 1, 1, DType::kI8},     {25, "I16", 1, 2, DType::kI16}, {26, "I32", 1, 4, DType::kI32},
    {27, "I64", 1, 8, DType::kI64},   {28, "F64", 1, 8, DType::kF64}, {29, "IQ1_M", 256, 56, {}},
    {30, "BF16", 1, 2, DType::kBF16},
};

std::optional<GgmlTypeRow> FindGgmlType(uint32_t id) {
  for (const GgmlTypeRow& row : kGgmlTypes) {
    if (row.id == id) return row;
  }
  for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) {
    const BlockFormat& format = FormatOf(static_cast<DType>(d));
    if (format.gguf_type != id) continue;
    const std::optional<DType> dtype = format.is_weight ? std::optional(static_cast<DType>(d)) : std::nullopt;
    return GgmlTypeRow{id, format.gguf_name, format.elements, format.bytes, dtype};
  }
  return std::nullopt;
}

constexpr const char* kTypeNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "bool", "string", "array", "u64", "i64", "f64"};
constexpr uint32_t kTypeCount = 13;

// Bytes of one value of a fixed-size type; 0 for strings and arrays.
uint64_t FixedBytes(GgufType type) {
  constexpr uint8_t kBytes[kTypeCount] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<uint32_t>(type)];
}

StatusOr<std::string_view> ReadString(ByteReader& reader, std::string_view what, uint64_t limit = UINT64_MAX) {
  QUERN_ASSIGN(const uint64_t length, reader.Read<uint64_t>(what));
  if (length > limit) {
    return absl::InvalidArgumentError(absl::StrFormat("%s at offset %u is %u bytes long, more than %u",
                                                      std::string(what), reader.offset(), length, limit));
  }
  QUERN_ASSIGN(const auto bytes, reader.Take(length, what));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

StatusOr<GgufType> ReadType(ByteReader& reader, std::string_view key) {
  QUERN_ASSIGN(const uint32_t type, reader.Read<uint32_t>("a metadata type"));
  if (type >= kTypeCount) {
    return absl::InvalidArgumentError(
        absl::StrFormat("metadata key \"%s\" has unknown type %u", std::string(key), type));
  }
  return static_cast<GgufType>(type);
}

template <typename T>
StatusOr<GgufValue> ReadInteger(ByteReader& reader) {
  QUERN_ASSIGN(const T value, reader.Read<T>("a metadata value"));
  if constexpr (std::is_signed_v<T>)
    return GgufValue(static_cast<int64_t>(value));
  else
    return GgufValue(static_cast<uint64_t>(value));
}

StatusOr<GgufValue> ReadArray(ByteReader& reader, std::string_view key) {
  QUERN_ASSIGN(const GgufType type, ReadType(reader, key));
  QUERN_ASSIGN(const uint64_t count, reader.Read<uint64_t>("an array length"));
  if (type == GgufType::kArray) {
    return absl::InvalidArgumentError(absl::StrFormat("metadata key \"%s\" is an array of arrays", std::string(key)));
  }
  const std::string what = absl::StrFormat("the array of metadata key \"%s\"", std::string(key));
  // Each element takes at least this many bytes, so this bounds the walk below by the size of the file.
  const uint64_t least = type == GgufType::kString ? 8 : FixedBytes(type);
  if (count > reader.left() / least) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s claims %u elements, but only %u bytes are left", what, count, reader.left()));
  }
  GgufArray array{type, count, {}};
  if (type != GgufType::kString) {
    QUERN_ASSIGN(array.bytes, reader.Take(count * least, what));
    return GgufValue(array);
  }
  ByteReader walk = reader;
  for (uint64_t i = 0; i < count; ++i) QUERN_RETURN_IF_ERROR(ReadString(walk, what).status());
  QUERN_ASSIGN(array.bytes, reader.Take(walk.offset() - reader.offset(), what));
  return GgufValue(array);
}

StatusOr<GgufValue> ReadValue(ByteReader& reader, GgufType type, std::string_view key) {
  switch (type) {
    case GgufType::kU8: return ReadInteger<uint8_t>(reader);
    case GgufType::kI8: return ReadInteger<int8_t>(reader);
    case GgufType::kU16: return ReadInteger<uint16_t>(reader);
    case GgufType::kI16: return ReadInteger<int16_t>(reader);
    case GgufType::kU32: return ReadInteger<uint32_t>(reader);
    case GgufType::kI32: return ReadInteger<int32_t>(reader);
    case GgufType::kU64: return ReadInteger<uint64_t>(reader);
    case GgufType::kI64: return ReadInteger<int64_t>(reader);
    case GgufType::kF32: {
      QUERN_ASSIGN(const float value, reader.Read<float>("a metadata value"));
      return GgufValue(static_cast<double>(value));
    }
    case GgufType::kF64: {
      QUERN_ASSIGN(const double value, reader.Read<double>("a metadata value"));
      return GgufValue(value);
    }
    case GgufType::kBool: {
      QUERN_ASSIGN(const uint8_t value, reader.Read<uint8_t>("a metadata value"));
      if (value > 1) {
        return absl::InvalidArgumentError(
            absl::StrFormat("metadata key \"%s\" is a bool of value %u", std::string(key), value));
      }
      return GgufValue(value == 1);
    }
    case GgufType::kString: {
      QUERN_ASSIGN(const std::string_view value, ReadString(reader, "a metadata string"));
      return GgufValue(value);
    }
    case GgufType::kArray: return ReadArray(reader, key);
  }
  return absl::InternalError("a metadata type without a reader");
}

const char* TypeName(const GgufValue& value) {
  constexpr const char* kNames[] = {"unsigned", "signed", "float", "bool", "string", "array"};
  return kNames[value.index()];
}

Status WrongType(std::string_view key, const GgufValue& value, const char* wanted) {
  return absl::InvalidArgumentError(
      absl::StrFormat("metadata key \"%s\" is a %s value, %s expected", std::string(key), TypeName(value), wanted));
}

}  // namespace

StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  QUERN_ASSIGN(MappedFile mapped, MappedFile::Open(path));
  GgufFile file;
  const Status status = file.Read(mapped.bytes());
  if (!status.ok()) {
    return Status(status.code(), absl::StrFormat("%s: %s", path, std::string(status.message())));
  }
  file.file_ = std::move(mapped);  // the bytes keep their address
  return file;
}

StatusOr<GgufFile> GgufFile::Parse(std::span<const uint8_t> bytes) {
  GgufFile file;
  QUERN_RETURN_IF_ERROR(file.Read(bytes));
  return file;
}

Status GgufFile::Read(std::span<const uint8_t> bytes) {
  bytes_ = bytes;
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
    QUERN_ASSIGN(const std::string_view key, ReadString(reader, "a metadata key", kMaxNameBytes));
    QUERN_ASSIGN(const GgufType type, ReadType(reader, key));
    QUERN_ASSIGN(GgufValue value, ReadValue(reader, type, key));
    if (!metadata_.emplace(std::string(key), std::move(value)).second) {
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
  for (uint64_t i = 0; i < tensor_count; ++i) {
    QUERN_ASSIGN(const std::string_view name, ReadString(reader, "a tensor name", kMaxNameBytes));
    GgufTensor tensor;
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
    if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
      return absl::InvalidArgumentError(absl::StrFormat("tensor \"%s\" occurs twice", tensor.name));
    }
    tensors_.push_back(std::move(tensor));
    places.push_back(place);
  }

  const uint64_t data_start = (reader.offset() + alignment_ - 1) / alignment_ * alignment_;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const uint64_t available = data_start <= bytes.size() ? bytes.size() - data_start : 0;
    if (places[i].offset > available || places[i].size > available - places[i].offset) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tensor \"%s\" (%u bytes at offset %u of the data) reaches past the end of the file",
                          tensors_[i].name, places[i].size, places[i].offset));
    }
    tensors_[i].bytes = bytes.subspan(data_start + places[i].offset, places[i].size);
  }
  return absl::OkStatus();
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  const auto it = tensor_index_.find(name);
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

StatusOr<const GgufValue*> GgufFile::Find(std::string_view key) const {
  const auto it = metadata_.find(key);
  if (it == metadata_.end()) {
    return absl::NotFoundError(absl::StrFormat("metadata key \"%s\" is missing", std::string(key)));
  }
  return &it->second;
}

StatusOr<int64_t> GgufFile::Int(std::string_view key) const {
  QUERN_ASSIGN(const GgufValue* value, Find(key));
  if (const int64_t* integer = std::get_if<int64_t>(value)) return *integer;
  if (const uint64_t* integer = std::get_if<uint64_t>(value); integer != nullptr && *integer <= INT64_MAX) {
    return static_cast<int64_t>(*integer);
  }
  return WrongType(key, *value, "an integer that fits 64 bits");
}

StatusOr<double> GgufFile::Float(std::string_view key) const {
  QUERN_ASSIGN(const GgufValue* value, Find(key));
  if (const double* real = std::get_if<double>(value)) return *real;
  return WrongType(key, *value, "a float");
}

StatusOr<bool> GgufFile::Bool(std::string_view key) const {
  QUERN_ASSIGN(const GgufValue* value, Find(key));
  if (const bool* flag = std::get_if<bool>(value)) return *flag;
  return WrongType(key, *value, "a bool");
}

StatusOr<std::string_view> GgufFile::String(std::string_view key) const {
  QUERN_ASSIGN(const GgufValue* value, Find(key));
  if (const std::string_view* text = std::get_if<std::string_view>(value)) return *text;
  return WrongType(key, *value, "a string");
}

StatusOr<const GgufArray*> GgufFile::Array(std::string_view key) const {
  QUERN_ASSIGN(const GgufValue* value, Find(key));
  if (const GgufArray* array = std::get_if<GgufArray>(value)) return array;
  return WrongType(key, *value, "an array");
}

StatusOr<std::vector<std::string_view>> GgufFile::Strings(std::string_view key) const {
  QUERN_ASSIGN(const GgufArray* array, Array(key));
  if (array->type != GgufType::kString) {
    return absl::InvalidArgumentError(absl::StrFormat("metadata key \"%s\" is an array of %s, strings expected",
                                                      std::string(key), kTypeNames[static_cast<int>(array->type)]));
  }
  std::vector<std::string_view> strings;
  strings.reserve(array->count);
  ByteReader reader(array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) {
    QUERN_ASSIGN(const std::string_view text, ReadString(reader, key));
    strings.push_back(text);
  }
  return strings;
}

StatusOr<std::vector<double>> GgufFile::Floats(std::string_view key) const {
  QUERN_ASSIGN(const GgufArray* array, Array(key));
  if (array->type != GgufType::kF32 && array->type != GgufType::kF64) {
    return absl::InvalidArgumentError(absl::StrFormat("metadata key \"%s\" is an array of %s, floats expected",
                                                      std::string(key), kTypeNames[static_cast<int>(array->type)]));
  }
  std::vector<double> values;
  values.reserve(array->count);
  ByteReader reader(array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) {
    QUERN_ASSIGN(const GgufValue value, ReadValue(reader, array->type, key));
    values.push_back(std::get<double>(value));
  }
  return values;
}

StatusOr<std::vector<int64_t>> GgufFile::Ints(std::string_view key) const {
  QUERN_ASSIGN(const GgufArray* array, Array(key));
  std::vector<int64_t> values;
  values.reserve(array->count);
  ByteReader reader(array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) {
    if (array->type == GgufType::kString) return WrongType(key, GgufValue(*array), "an array of integers");
    QUERN_ASSIGN(const GgufValue value, ReadValue(reader, array->type, key));
    if (const int64_t* integer = std::get_if<int64_t>(&value)) {
      values.push_back(*integer);
    } else if (const uint64_t* natural = std::get_if<uint64_t>(&value); natural != nullptr && *natural <= INT64_MAX) {
      values.push_back(static_cast<int64_t>(*natural));
    } else if (const bool* truth = std::get_if<bool>(&value)) {
      values.push_back(*truth ? 1 : 0);
    } else {
      return WrongType(key, value, "an array of integers");
    }
  }
  return values;
}

std::string ToString(const GgufValue& value) {
  struct Visitor {
    std::string operator()(uint64_t v) const { return absl::StrFormat("%u", v); }
    std::string operator()(int64_t v) const { return absl::StrFormat("%d", v); }
    std::string operator()(double v) const { return absl::StrFormat("%g", v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::string_view v) const {
      return v.size() <= 60 ? std::string(v) : std::string(v.substr(0, 57)) + "...";
    }
    std::string operator()(const GgufArray& v) const {
      return absl::StrFormat("%s[%u]", kTypeNames[static_cast<int>(v.type)], v.count);
    }
  };
  return std::visit(Visitor{}, value);
}

}  // namespace quern
