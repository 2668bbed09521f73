#include "import/hugging_face/json.h"

#include <cmath>

#include "base/mapped_file.h"

namespace quern::hugging_face {
namespace {

Status Wrong(std::string_view key, const Json& value, const char* wanted) {
  return absl::InvalidArgumentError(absl::StrFormat("%s is %s, %s expected", key, Shown(value), wanted));
}

}  // namespace

StatusOr<Json> ParseJson(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("no object of JSON");
  return json;
}

StatusOr<Json> ReadJson(const std::string& path, uint64_t most_bytes) {
  QUERN_ASSIGN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > most_bytes)
    return absl::InvalidArgumentError(absl::StrFormat("%s: longer than %u bytes", path, most_bytes));
  StatusOr<Json> json = ParseJson({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  if (!json.ok())
    return absl::InvalidArgumentError(absl::StrFormat("%s: %s", path, std::string(json.status().message())));
  return json;
}

const Json* Find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

StatusOr<std::optional<int64_t>> FindInt(const Json& object, std::string_view key) {
  const Json* value = Find(object, key);
  if (value == nullptr) return std::optional<int64_t>();
  const bool fits = value->is_number_integer() && (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX);
  if (!fits) return Wrong(key, *value, "an integer");
  return std::optional(value->get<int64_t>());
}

StatusOr<std::optional<double>> FindNumber(const Json& object, std::string_view key) {
  const Json* value = Find(object, key);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number() || !std::isfinite(value->get<double>())) return Wrong(key, *value, "a number");
  return std::optional(value->get<double>());
}

StatusOr<std::optional<bool>> FindBool(const Json& object, std::string_view key) {
  const Json* value = Find(object, key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return Wrong(key, *value, "true or false");
  return std::optional(value->get<bool>());
}

StatusOr<std::optional<std::string>> FindText(const Json& object, std::string_view key) {
  const Json* value = Find(object, key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return Wrong(key, *value, "a string");
  return std::optional(value->get<std::string>());
}

std::string Shown(const Json& value) {
  constexpr size_t kMost = 120;
  if (value.is_structured() && value.size() > 16) return value.is_array() ? "a long list" : "an object";
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kMost) text.replace(kMost - 3, std::string::npos, "...");
  return text;
}

}  // namespace quern::hugging_face
