#include "import/metadata.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "import/gguf_value.h"

namespace quern {
namespace {

const char* TypeName(const GgufValue& value) {
  constexpr const char* kNames[] = {"unsigned", "signed", "float", "bool", "string", "array"};
  return kNames[value.index()];
}

Status WrongType(std::string_view key, const GgufValue& value, const char* wanted) {
  return absl::InvalidArgumentError(
      absl::StrFormat("metadata key \"%s\" is a %s value, %s expected", std::string(key), TypeName(value), wanted));
}

}  // namespace

StatusOr<const GgufValue*> Metadata::Find(std::string_view key) const {
  const auto it = values_.find(key);
  if (it == values_.end()) {
    return absl::NotFoundError(absl::StrFormat("metadata key \"%s\" is missing", std::string(key)));
  }
  return &it->second;
}

StatusOr<int64_t> Metadata::Int(std::string_view key) const {
  QUERN_ASSIGN(const GgufValue* value, Find(key));
  if (const int64_t* integer = std::get_if<int64_t>(value)) return *integer;
  if (const uint64_t* integer = std::get_if<uint64_t>(value); integer != nullptr && *integer <= INT64_MAX) {
    return static_cast<int64_t>(*integer);
  }
  return WrongType(key, *value, "an integer that fits 64 bits");
}

StatusOr<double> Metadata::Float(std::string_view key) const {
  QUERN_ASSIGN(const GgufValue* value, Find(key));
  if (const double* real = std::get_if<double>(value)) return *real;
  return WrongType(key, *value, "a float");
}

StatusOr<bool> Metadata::Bool(std::string_view key) const {
  QUERN_ASSIGN(const GgufValue* value, Find(key));
  if (const bool* flag = std::get_if<bool>(value)) return *flag;
  return WrongType(key, *value, "a bool");
}

StatusOr<std::string_view> Metadata::String(std::string_view key) const {
  QUERN_ASSIGN(const GgufValue* value, Find(key));
  if (const std::string_view* text = std::get_if<std::string_view>(value)) return *text;
  return WrongType(key, *value, "a string");
}

StatusOr<const GgufArray*> Metadata::Array(std::string_view key) const {
  QUERN_ASSIGN(const GgufValue* value, Find(key));
  if (const GgufArray* array = std::get_if<GgufArray>(value)) return array;
  return WrongType(key, *value, "an array");
}

StatusOr<std::vector<std::string_view>> Metadata::Strings(std::string_view key) const {
  QUERN_ASSIGN(const GgufArray* array, Array(key));
  if (array->type != GgufType::kString) {
    return absl::InvalidArgumentError(absl::StrFormat("metadata key \"%s\" is an array of %s, strings expected",
                                                      std::string(key), NameOfGgufType(array->type)));
  }
  std::vector<std::string_view> strings;
  strings.reserve(array->count);
  ByteReader reader(array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) {
    QUERN_ASSIGN(const std::string_view text, ReadGgufString(reader, key));
    strings.push_back(text);
  }
  return strings;
}

StatusOr<std::vector<double>> Metadata::Floats(std::string_view key) const {
  QUERN_ASSIGN(const GgufArray* array, Array(key));
  if (array->type != GgufType::kF32 && array->type != GgufType::kF64) {
    return absl::InvalidArgumentError(absl::StrFormat("metadata key \"%s\" is an array of %s, floats expected",
                                                      std::string(key), NameOfGgufType(array->type)));
  }
  std::vector<double> values;
  values.reserve(array->count);
  ByteReader reader(array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) {
    QUERN_ASSIGN(const GgufValue value, ReadGgufValue(reader, array->type, key));
    values.push_back(std::get<double>(value));
  }
  return values;
}

StatusOr<std::vector<int64_t>> Metadata::Ints(std::string_view key) const {
  QUERN_ASSIGN(const GgufArray* array, Array(key));
  std::vector<int64_t> values;
  values.reserve(array->count);
  ByteReader reader(array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) {
    if (array->type == GgufType::kString) return WrongType(key, GgufValue(*array), "an array of integers");
    QUERN_ASSIGN(const GgufValue value, ReadGgufValue(reader, array->type, key));
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

StatusOr<std::span<const uint8_t>> Metadata::Bytes(std::string_view key) const {
  QUERN_ASSIGN(const GgufArray* array, Array(key));
  if (array->type != GgufType::kU8 && array->type != GgufType::kI8) {
    return absl::InvalidArgumentError(absl::StrFormat("metadata key \"%s\" is an array of %s, bytes expected",
                                                      std::string(key), NameOfGgufType(array->type)));
  }
  return array->bytes;
}

GgufType Metadata::TypeOf(std::string_view key) const {
  if (const auto it = types_.find(key); it != types_.end()) return it->second;
  struct Natural {
    GgufType operator()(uint64_t v) const { return v <= UINT32_MAX ? GgufType::kU32 : GgufType::kU64; }
    GgufType operator()(int64_t v) const { return v >= INT32_MIN && v <= INT32_MAX ? GgufType::kI32 : GgufType::kI64; }
    GgufType operator()(double) const { return GgufType::kF32; }
    GgufType operator()(bool) const { return GgufType::kBool; }
    GgufType operator()(std::string_view) const { return GgufType::kString; }
    GgufType operator()(const GgufArray&) const { return GgufType::kArray; }
  };
  return std::visit(Natural{}, values_.find(key)->second);
}

bool Metadata::Add(std::string_view key, GgufType type, GgufValue value) {
  types_.emplace(key, type);
  return values_.emplace(key, value).second;
}

void Metadata::Put(std::string_view key, GgufValue value) {
  Remove(key);
  values_.emplace(key, value);
}

void Metadata::Remove(std::string_view key) {
  values_.erase(std::string(key));
  types_.erase(std::string(key));
}

std::span<const uint8_t> Metadata::Keep(std::vector<uint8_t> bytes) { return own_.emplace_back(std::move(bytes)); }

void Metadata::PutInt(std::string_view key, int64_t value) {
  Put(key, value < 0 ? GgufValue(value) : GgufValue(static_cast<uint64_t>(value)));
}

void Metadata::PutText(std::string_view key, std::string_view text) {
  const std::span<const uint8_t> kept = Keep({text.begin(), text.end()});
  Put(key, std::string_view(reinterpret_cast<const char*>(kept.data()), kept.size()));
}

void Metadata::PutTexts(std::string_view key, std::span<const std::string> texts) {
  std::vector<uint8_t> bytes;
  for (const std::string& text : texts) {
    const uint64_t size = text.size();
    const auto* begin = reinterpret_cast<const uint8_t*>(&size);
    bytes.insert(bytes.end(), begin, begin + sizeof size);
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  Put(key, GgufArray{GgufType::kString, texts.size(), Keep(std::move(bytes))});
}

void Metadata::PutFloats(std::string_view key, std::span<const float> numbers) {
  const auto* begin = reinterpret_cast<const uint8_t*>(numbers.data());
  Put(key, GgufArray{GgufType::kF32, numbers.size(), Keep({begin, begin + numbers.size_bytes()})});
}

void Metadata::PutInts(std::string_view key, std::span<const int32_t> numbers) {
  const auto* begin = reinterpret_cast<const uint8_t*>(numbers.data());
  Put(key, GgufArray{GgufType::kI32, numbers.size(), Keep({begin, begin + numbers.size_bytes()})});
}

void Metadata::PutBools(std::string_view key, const std::vector<bool>& flags) {
  Put(key, GgufArray{GgufType::kBool, flags.size(), Keep({flags.begin(), flags.end()})});
}

void Metadata::PutAll(const Metadata& other) {
  for (const auto& [key, value] : other.metadata()) {
    if (const auto* text = std::get_if<std::string_view>(&value)) {
      PutText(key, *text);
    } else if (const auto* array = std::get_if<GgufArray>(&value)) {
      Put(key, GgufArray{array->type, array->count, Keep({array->bytes.begin(), array->bytes.end()})});
    } else {
      Put(key, value);
    }
    types_.insert_or_assign(key, other.TypeOf(key));
  }
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
      constexpr uint64_t kShown = 4;
      std::string text = absl::StrFormat("%s[%u]", NameOfGgufType(v.type), v.count);
      ByteReader reader(v.bytes);
      for (uint64_t i = 0; i < std::min(v.count, kShown); ++i) {
        const StatusOr<GgufValue> element = ReadGgufValue(reader, v.type, "");
        if (!element.ok()) break;
        const auto* const word = std::get_if<std::string_view>(&*element);
        absl::StrAppend(&text, i == 0 ? ": " : ", ",
                        word == nullptr ? ToString(*element) : absl::StrCat("\"", ToString(*element), "\""));
      }
      return text + (v.count > kShown ? ", ..." : "");
    }
  };
  return std::visit(Visitor{}, value);
}

}  // namespace quern
