// Options and attributes of quern/c.h: from a JSON object to the structs of the public interface, field by field.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "c/handles.h"
#include "nlohmann/json.hpp"

namespace quern::c {

// Where the value of an option goes.
using Place =
    std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*, std::map<std::string, int64_t>*,
                 std::vector<std::string>*, std::vector<std::pair<int32_t, float>>*, std::vector<LoraAdapter>*>;
struct Field {
  const char* name;
  Place place;
};

// Sets the fields that the object `text` has, null: none. Refuses, naming it, what is no JSON object, has another name,
// or a value that the field does not take.
quern_error* ReadOptions(const char* function, const char* text, const std::vector<Field>& fields);

// The fields of quern::Options that are data, and those of quern::SamplingOptions.
std::vector<Field> FieldsOf(Options& options);
std::vector<Field> FieldsOf(SamplingOptions& options);

// {"axis": -1, "act": "Silu", "shape": [2, 3], "dims": ["BATCH", "4"]}; null: none.
quern_error* ReadAttributes(const char* function, const char* text, std::vector<Attribute>* attributes);

// An object of numbers: reports.
using Report = std::vector<std::pair<const char*, std::variant<double, int64_t>>>;
quern_text* ReportText(const Report& report);

}  // namespace quern::c
