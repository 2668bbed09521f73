// A walk over JSON that nothing is known of: whoever reads asks for what should be there, and the first thing that is
// not is the error, with its place. After an error every answer is empty, so that a reader needs to look at the status
// once.
//
//   JsonReader file(json, status);
//   for (const JsonReader& kernel : file.Field("kernels").Rows()) threads.push_back(kernel.Field("threads").Integer());
//   if (!status.ok()) return status;    // "kernels[3].threads: a whole number expected"
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/extent.h"
#include "base/status.h"

namespace quern::device {

class JsonReader {
 public:
  using Json = nlohmann::ordered_json;
  // Both outlive it.
  JsonReader(const Json& json, Status& status) : JsonReader(&json, "", status) {}

  // Of an object. Error: it is none, or has no such field.
  JsonReader Field(const std::string& name) const;
  // Whether the object has the field.
  bool Has(const std::string& name) const;
  // The values of an array, or the values of an object by their names.
  std::vector<JsonReader> Rows() const;
  std::vector<std::pair<std::string, JsonReader>> Members() const;

  int64_t Integer() const;
  bool Bool() const;
  std::string Text() const;
  bool IsNull() const { return json_ != nullptr && json_->is_null(); }
  // Text that is a polynomial in symbols.
  Extent Size() const;
  // Text in base 64.
  std::vector<uint8_t> Bytes() const;

  // Makes `what` the error, here.
  void Fail(const std::string& what) const;

 private:
  JsonReader(const Json* json, std::string path, Status& status)
      : json_(json), path_(std::move(path)), status_(status) {}
  const Json* json_;  // null: there has been an error
  std::string path_;
  Status& status_;
};

}  // namespace quern::device
