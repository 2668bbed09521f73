#include "c/json_options.h"

#include <limits>
#include <optional>

namespace quern::c {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> Number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (value == "inf") return kInf;
  if (value == "-inf") return -kInf;
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

// A whole number that T holds.
template <typename T>
std::optional<T> Whole(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned()) {
    const uint64_t whole = value.get<uint64_t>();
    if (whole > static_cast<uint64_t>(std::numeric_limits<T>::max())) return std::nullopt;
    return static_cast<T>(whole);
  }
  const int64_t whole = value.get<int64_t>();
  if (std::is_unsigned_v<T> || whole < static_cast<int64_t>(std::numeric_limits<T>::min())) return std::nullopt;
  return static_cast<T>(whole);
}

// What each place takes, and what that is called.
struct Taker {
  const Json& value;

  const char* operator()(bool* to) const {
    if (!value.is_boolean()) return "true or false";
    *to = value.get<bool>();
    return nullptr;
  }
  template <typename T>
  const char* TakeWhole(T* to) const {
    const std::optional<T> whole = Whole<T>(value);
    if (!whole) return "a whole number";
    *to = *whole;
    return nullptr;
  }
  const char* operator()(int* to) const { return TakeWhole(to); }
  const char* operator()(int64_t* to) const { return TakeWhole(to); }
  const char* operator()(uint64_t* to) const { return TakeWhole(to); }
  const char* operator()(double* to) const {
    const std::optional<double> number = Number(value);
    if (!number) return "a number";
    *to = *number;
    return nullptr;
  }
  const char* operator()(std::string* to) const {
    if (!value.is_string()) return "a string";
    *to = value.get<std::string>();
    return nullptr;
  }
  const char* operator()(std::map<std::string, int64_t>* to) const {
    constexpr const char* kWanted = "an object of whole numbers";
    if (!value.is_object()) return kWanted;
    for (const auto& [name, size] : value.items()) {
      if (const char* wrong = Taker{size}(&(*to)[name])) return wrong;
    }
    return nullptr;
  }
  const char* operator()(std::vector<std::string>* to) const {
    if (!value.is_array()) return "a list of strings";
    to->clear();
    for (const Json& text : value) {
      if (!text.is_string()) return "a list of strings";
      to->push_back(text.get<std::string>());
    }
    return nullptr;
  }
  const char* operator()(std::vector<LoraAdapter>* to) const {
    constexpr const char* kWanted = "a list of adapters, each \"FILE\" or [\"FILE\", scale]";
    if (!value.is_array()) return kWanted;
    for (const Json& each : value) {
      const bool scaled = each.is_array() && each.size() == 2;
      const Json& path = scaled ? each[0] : each;
      const std::optional<double> scale = scaled ? Number(each[1]) : 1;
      if (!path.is_string() || !scale) return kWanted;
      to->push_back({path.get<std::string>(), *scale});
    }
    return nullptr;
  }
  const char* operator()(std::vector<std::pair<int32_t, float>>* to) const {
    constexpr const char* kWanted = "a list of [id, bias]";
    if (!value.is_array()) return kWanted;
    for (const Json& pair : value) {
      if (!pair.is_array() || pair.size() != 2) return kWanted;
      const std::optional<int32_t> id = Whole<int32_t>(pair[0]);
      const std::optional<double> bias = Number(pair[1]);
      if (!id || !bias) return kWanted;
      to->emplace_back(*id, static_cast<float>(*bias));
    }
    return nullptr;
  }
};

// The object, or a refusal.
quern_error* ParseObject(const char* function, const char* what, const char* text, Json* object) {
  *object = Json::parse(text, nullptr, false);
  if (object->is_object()) return nullptr;
  return Refused(function, std::string(what) + (object->is_discarded() ? " are no JSON: " : " are no JSON object: ") +
                               std::string(text).substr(0, 80));
}

// The value of an attribute, or nothing where attributes are never like that.
std::optional<decltype(Attribute::value)> AttributeOf(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (const std::optional<int64_t> whole = Whole<int64_t>(value)) return *whole;
  if (const std::optional<double> number = Number(value)) return *number;
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  for (const Json& element : value) {
    const std::optional<int64_t> whole = Whole<int64_t>(element);
    if (whole)
      numbers.push_back(*whole);
    else if (!element.is_string())
      return std::nullopt;
    texts.push_back(whole ? std::to_string(*whole) : element.get<std::string>());
  }
  if (numbers.size() == texts.size()) return numbers;
  return texts;
}

}  // namespace

quern_error* ReadOptions(const char* function, const char* text, const std::vector<Field>& fields) {
  if (text == nullptr) return nullptr;
  Json object;
  if (quern_error* error = ParseObject(function, "options", text, &object)) return error;
  for (const auto& [name, value] : object.items()) {
    const Field* found = nullptr;
    std::string known;
    for (const Field& field : fields) {
      if (name == field.name) found = &field;
      known += (known.empty() ? "" : ", ") + std::string(field.name);
    }
    if (found == nullptr) return Refused(function, "there is no option \"" + name + "\": there are " + known);
    if (const char* wanted = std::visit(Taker{value}, found->place)) {
      return Refused(function, "option \"" + name + "\" is " + wanted + ", not " +
                                   value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80));
    }
  }
  return nullptr;
}

std::vector<Field> FieldsOf(Options& options) {
  return {{"cpu", &options.cpu},           {"device", &options.device},
          {"threads", &options.threads},   {"compile_threads", &options.compile_threads},
          {"exact", &options.exact},       {"invariant", &options.invariant},
          {"kernels", &options.kernels},   {"specialise", &options.specialise},
          {"cache", &options.cache},       {"cache_verify", &options.cache_verify},
          {"check", &options.check},       {"check_folder", &options.check_folder},
          {"perf_map", &options.perf_map}, {"debug_kernels", &options.debug_kernels},
          {"context", &options.context},   {"lora", &options.lora}};
}

std::vector<Field> FieldsOf(SamplingOptions& options) {
  std::vector<Field> fields = {{"seed", &options.seed},
                               {"logit_bias", &options.logit_bias},
                               {"dry_breakers", &options.dry_breakers},
                               {"grammar", &options.grammar}};
  for (const SamplingNumber& number : SamplingNumbers())
    fields.push_back({number.name, std::visit([&](auto place) -> Place { return &(options.*place); }, number.member)});
  return fields;
}

quern_error* ReadAttributes(const char* function, const char* text, std::vector<Attribute>* attributes) {
  if (text == nullptr) return nullptr;
  Json object;
  if (quern_error* error = ParseObject(function, "attributes", text, &object)) return error;
  for (const auto& [name, value] : object.items()) {
    std::optional<decltype(Attribute::value)> taken = AttributeOf(value);
    if (!taken) {
      return Refused(function, "attribute \"" + name + "\" is neither true nor false, a number, a string, nor a list");
    }
    attributes->push_back({name, *std::move(taken)});
  }
  return nullptr;
}

quern_text* ReportText(const Report& report) {
  Json object = Json::object();
  for (const auto& [name, value] : report) std::visit([&, key = name](auto number) { object[key] = number; }, value);
  return MakeText(object.dump());
}

}  // namespace quern::c
