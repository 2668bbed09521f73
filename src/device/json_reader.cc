#include "device/json_reader.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace quern::device {
namespace {

constexpr size_t kLongestSize = 200;  // characters of a polynomial

}  // namespace

void JsonReader::Fail(const std::string& what) const {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(path_.empty() ? "the top" : path_, ": ", what));
}

JsonReader JsonReader::Field(const std::string& name) const {
  const std::string path = path_.empty() ? name : absl::StrCat(path_, ".", name);
  if (json_ == nullptr || !status_.ok()) return {nullptr, path, status_};
  if (!json_->is_object())
    Fail("an object expected");
  else if (const auto found = json_->find(name); found != json_->end())
    return {&*found, path, status_};
  else
    JsonReader(nullptr, path, status_).Fail("it is missing");
  return {nullptr, path, status_};
}

bool JsonReader::Has(const std::string& name) const {
  return json_ != nullptr && json_->is_object() && json_->contains(name);
}

std::vector<JsonReader> JsonReader::Rows() const {
  std::vector<JsonReader> rows;
  if (json_ == nullptr || !status_.ok()) return rows;
  if (!json_->is_array())
    Fail("an array expected");
  else
    for (const Json& row : *json_) rows.push_back({&row, absl::StrCat(path_, "[", rows.size(), "]"), status_});
  return rows;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::Members() const {
  std::vector<std::pair<std::string, JsonReader>> members;
  if (json_ == nullptr || !status_.ok()) return members;
  if (!json_->is_object())
    Fail("an object expected");
  else
    for (const auto& member : json_->items())
      members.emplace_back(member.key(), JsonReader(&member.value(), absl::StrCat(path_, ".", member.key()), status_));
  return members;
}

int64_t JsonReader::Integer() const {
  if (json_ == nullptr || !status_.ok()) return 0;
  const bool large = json_->is_number_unsigned() && json_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (json_->is_number_integer() && !large) return json_->get<int64_t>();
  Fail("a whole number expected");
  return 0;
}

bool JsonReader::Bool() const {
  if (json_ == nullptr || !status_.ok()) return false;
  if (json_->is_boolean()) return json_->get<bool>();
  Fail("true or false expected");
  return false;
}

std::string JsonReader::Text() const {
  if (json_ == nullptr || !status_.ok()) return "";
  if (json_->is_string()) return json_->get<std::string>();
  Fail("text expected");
  return "";
}

Extent JsonReader::Size() const {
  const std::string text = Text();
  if (json_ == nullptr || !status_.ok()) return {};
  if (text.size() > kLongestSize) {
    Fail("a size of so many terms");
    return {};
  }
  const StatusOr<Extent> size = Extent::Parse(text);
  if (size.ok()) return *size;
  Fail("a size expected, such as \"64*SEQ + 3\"");
  return {};
}

std::vector<uint8_t> JsonReader::Bytes() const {
  const std::string text = Text();
  std::string bytes;
  if (!absl::Base64Unescape(text, &bytes)) Fail("base 64 expected");
  return {bytes.begin(), bytes.end()};
}

}  // namespace quern::device
