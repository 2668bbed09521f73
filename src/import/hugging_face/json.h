// JSON of a model's folder, read by checked accessors: the files are not trusted.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quern::hugging_face {

using Json = nlohmann::json;

// Far above any published file of its kind.
inline constexpr uint64_t kMostConfigBytes = 16 << 20, kMostTokenizerBytes = 512 << 20;

// Errors: one that cannot be opened; InvalidArgument, what is longer, or no object of JSON. They begin with the path.
StatusOr<Json> ReadJson(const std::string& path, uint64_t most_bytes);
// The same of a text; the error says what is wrong with it alone.
StatusOr<Json> ParseJson(std::string_view text);

// The member of an object, where there is one that is not null; else null.
const Json* Find(const Json& object, std::string_view key);

// Of a member: nothing where there is none. Error: InvalidArgument, one of another type; a number that 64 bits do not
// hold, or that is not finite.
StatusOr<std::optional<int64_t>> FindInt(const Json& object, std::string_view key);
StatusOr<std::optional<double>> FindNumber(const Json& object, std::string_view key);
StatusOr<std::optional<bool>> FindBool(const Json& object, std::string_view key);
StatusOr<std::optional<std::string>> FindText(const Json& object, std::string_view key);

// For errors: a value in short, printable.
std::string Shown(const Json& value);

}  // namespace quern::hugging_face
