#include "import/gguf_value.h"

namespace quern {
namespace {

constexpr uint32_t kTypeCount = 13;
constexpr const char* kTypeNames[kTypeCount] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                "bool", "string", "array", "u64", "i64", "f64"};

template <typename T>
StatusOr<GgufValue> ReadInteger(ByteReader& reader) {
  QUERN_ASSIGN(const T value, reader.Read<T>("a metadata value"));
  if constexpr (std::is_signed_v<T>)
    return GgufValue(static_cast<int64_t>(value));
  else
    return GgufValue(static_cast<uint64_t>(value));
}

StatusOr<GgufValue> ReadArray(ByteReader& reader, std::string_view key) {
  QUERN_ASSIGN(const GgufType type, ReadGgufType(reader, key));
  QUERN_ASSIGN(const uint64_t count, reader.Read<uint64_t>("an array length"));
  if (type == GgufType::kArray) {
    return absl::InvalidArgumentError(absl::StrFormat("metadata key \"%s\" is an array of arrays", std::string(key)));
  }
  const std::string what = absl::StrFormat("the array of metadata key \"%s\"", std::string(key));
  // Each element takes at least this many bytes, so this bounds the walk below by the size of the file.
  const uint64_t least = type == GgufType::kString ? 8 : BytesOfGgufType(type);
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
  for (uint64_t i = 0; i < count; ++i) QUERN_RETURN_IF_ERROR(ReadGgufString(walk, what).status());
  QUERN_ASSIGN(array.bytes, reader.Take(walk.offset() - reader.offset(), what));
  return GgufValue(array);
}

}  // namespace

const char* NameOfGgufType(GgufType type) { return kTypeNames[static_cast<uint32_t>(type)]; }

uint64_t BytesOfGgufType(GgufType type) {
  constexpr uint8_t kBytes[kTypeCount] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<uint32_t>(type)];
}

StatusOr<std::string_view> ReadGgufString(ByteReader& reader, std::string_view what, uint64_t limit) {
  QUERN_ASSIGN(const uint64_t length, reader.Read<uint64_t>(what));
  if (length > limit) {
    return absl::InvalidArgumentError(absl::StrFormat("%s at offset %u is %u bytes long, more than %u",
                                                      std::string(what), reader.offset(), length, limit));
  }
  QUERN_ASSIGN(const auto bytes, reader.Take(length, what));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

StatusOr<GgufType> ReadGgufType(ByteReader& reader, std::string_view key) {
  QUERN_ASSIGN(const uint32_t type, reader.Read<uint32_t>("a metadata type"));
  if (type >= kTypeCount) {
    return absl::InvalidArgumentError(
        absl::StrFormat("metadata key \"%s\" has unknown type %u", std::string(key), type));
  }
  return static_cast<GgufType>(type);
}

StatusOr<GgufValue> ReadGgufValue(ByteReader& reader, GgufType type, std::string_view key) {
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
      QUERN_ASSIGN(const std::string_view value, ReadGgufString(reader, "a metadata string"));
      return GgufValue(value);
    }
    case GgufType::kArray: return ReadArray(reader, key);
  }
  return absl::InternalError("a metadata type without a reader");
}

}  // namespace quern
