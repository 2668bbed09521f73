// Ranges and quantisation maps as JSON.

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "compiler/public_error.h"
#include "quern/qdq.h"

namespace quern {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kInf = std::numeric_limits<double>::infinity();

Json OfRange(const ValueRange& range) {
  if (!std::isfinite(range.low) || !std::isfinite(range.high)) return nullptr;
  return Json::array({range.low, range.high});
}

std::optional<ValueRange> ToRange(const Json& json) {
  if (json.is_null()) return ValueRange{-kInf, kInf};
  if (!json.is_array() || json.size() != 2 || !json[0].is_number() || !json[1].is_number()) return std::nullopt;
  const ValueRange range{json[0].get<double>(), json[1].get<double>()};
  return range.low <= range.high ? std::optional(range) : std::nullopt;
}

Error Wrong(const std::string& name, std::string_view wanted) {
  return compiler::ErrorOf(ErrorCode::kInvalid, name + ": " + std::string(wanted) + " expected");
}

// The fields of one scheme; what is wrong, or null.
const char* TakeScheme(const Json& json, ValueScheme& scheme) {
  if (!json.is_object()) return "{\"dtype\": .., ..}";
  for (const auto& [field, value] : json.items()) {
    if (field == "dtype") {
      if (value != "u8" && value != "i8") return "dtype \"u8\" or \"i8\"";
      scheme.dtype = value.get<std::string>();
    } else if (field == "symmetric") {
      if (!value.is_boolean()) return "symmetric true or false";
      scheme.symmetric = value.get<bool>();
    } else if (field == "axis") {
      if (!value.is_number_unsigned() || value.get<uint64_t>() > 64) return "axis, a dimension from 0 on,";
      scheme.axis = value.get<int64_t>();
    } else if (field == "range") {
      scheme.range = value.is_null() ? std::nullopt : ToRange(value);
      if (!scheme.range) return "range [least, greatest]";
    } else {
      return "dtype, symmetric, axis and range alone";
    }
  }
  return nullptr;
}

// The object that a text is; null where it is none.
Json ObjectOf(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  return json.is_object() ? json : Json();
}

}  // namespace

std::string RangesJson(const ValueRanges& ranges) {
  Json json = Json::object();
  for (const auto& [name, range] : ranges) json[name] = OfRange(range);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ValueRanges> ParseRanges(std::string_view text) {
  const Json json = ObjectOf(text);
  if (json.is_null()) return Result<ValueRanges>::Failed(Wrong("ranges", "{\"NAME\": [least, greatest], ..} in JSON"));
  ValueRanges ranges;
  for (const auto& [name, value] : json.items()) {
    const std::optional<ValueRange> range = ToRange(value);
    if (!range) return Result<ValueRanges>::Failed(Wrong(name, "[least, greatest]"));
    ranges[name] = *range;
  }
  return ranges;
}

std::string QuantisationMapJson(const QuantisationMap& map) {
  Json json = Json::object();
  for (const auto& [name, scheme] : map) {
    Json& as = json[name];
    as["dtype"] = scheme.dtype;
    if (scheme.symmetric) as["symmetric"] = true;
    if (scheme.axis) as["axis"] = *scheme.axis;
    if (scheme.range) as["range"] = OfRange(*scheme.range);
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<QuantisationMap> ParseQuantisationMap(std::string_view text) {
  const Json json = ObjectOf(text);
  if (json.is_null()) return Result<QuantisationMap>::Failed(Wrong("map", "{\"NAME\": {\"dtype\": ..}, ..} in JSON"));
  QuantisationMap map;
  for (const auto& [name, value] : json.items()) {
    if (const char* const wanted = TakeScheme(value, map[name]))
      return Result<QuantisationMap>::Failed(Wrong(name, wanted));
  }
  return map;
}

}  // namespace quern
