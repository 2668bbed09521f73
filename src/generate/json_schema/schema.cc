// Schemas as a whole: which keywords there are, types, references, alternatives, constants.
#include <algorithm>
#include <cmath>

#include "generate/grammar/grammar.h"
#include "generate/json_schema.h"
#include "generate/json_schema/writer.h"

namespace quern::json_schema {
namespace {

// Every keyword that is taken, and the type of values it is about; "" of all, "-" of none: it says nothing about them.
struct Keyword {
  std::string_view name, type;
};
constexpr Keyword kKeywords[] = {
    {"type", ""},
    {"enum", ""},
    {"const", ""},
    {"anyOf", ""},
    {"oneOf", ""},
    {"allOf", ""},
    {"$ref", ""},
    {"properties", "object"},
    {"required", "object"},
    {"items", "array"},
    {"minItems", "array"},
    {"additionalProperties", "object"},
    {"maxItems", "array"},
    {"minLength", "string"},
    {"prefixItems", "array"},
    {"maxLength", "string"},
    {"minimum", "number"},
    {"maximum", "number"},
    {"exclusiveMinimum", "number"},
    {"exclusiveMaximum", "number"},
    {"title", "-"},
    {"description", "-"},
    {"default", "-"},
    {"examples", "-"},
    {"$schema", "-"},
    {"$comment", "-"},
    {"$defs", "-"},
    {"definitions", "-"},
    {"deprecated", "-"},
    {"readOnly", "-"},
    {"writeOnly", "-"},
};
constexpr std::string_view kTypes[] = {"object", "array", "string", "number", "integer", "boolean", "null"};

const Keyword* Find(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kKeywords), std::end(kKeywords),
                                         [&](const Keyword& keyword) { return keyword.name == name; });
  return found == std::end(kKeywords) ? nullptr : found;
}

bool IsOfType(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "integer")
    return value.is_number_integer() || (value.is_number() && value.get<double>() == std::floor(value.get<double>()));
  return type == "boolean" ? value.is_boolean() : value.is_null();
}

// The values that a schema lists, or none.
std::vector<Json> Listed(const Json& schema) {
  if (!schema.is_object()) return {};
  if (const auto found = schema.find("const"); found != schema.end()) return {*found};
  const auto found = schema.find("enum");
  return found != schema.end() && found->is_array() ? std::vector<Json>(found->begin(), found->end())
                                                    : std::vector<Json>();
}

}  // namespace

Status Writer::CheckKeywords(const Place& place, const std::vector<std::string_view>& only) const {
  for (const auto& [name, value] : place.schema.items()) {
    const Keyword* const keyword = Find(name);
    if (name == "$id" && place.depth == 0) continue;
    if (name == "uniqueItems" && value.is_boolean() && !value.get<bool>()) continue;
    if (keyword == nullptr) return NotKnown(place.at, "the keyword \"" + name + "\" is not taken");
    if (only.empty() || keyword->type == "-" || std::find(only.begin(), only.end(), name) != only.end()) continue;
    return NotKnown(place.at, "the keyword \"" + name + "\" beside \"" + std::string(only[0]) + "\" is not taken");
  }
  return absl::OkStatus();
}

StatusOr<int64_t> Writer::Count(const Place& place, const std::string& keyword, int64_t otherwise) const {
  const auto found = place.schema.find(keyword);
  if (found == place.schema.end()) return otherwise;
  if (!found->is_number() || !(found->get<double>() >= 0) || !IsOfType(*found, "integer"))
    return Wrong(place.at, keyword + " is no whole number from 0 on");
  if (found->get<double>() > static_cast<double>(kMostCount))
    return absl::ResourceExhaustedError(
        absl::StrFormat("the schema, #%s: %s is more than %d", place.at, keyword, kMostCount));
  return static_cast<int64_t>(found->get<double>());
}

StatusOr<std::string> Writer::Define(const std::string& body) {
  if (rules_.size() + body.size() > grammar::kMostText)
    return absl::ResourceExhaustedError("the schema's grammar is too large");
  const std::string name = absl::StrFormat("r%d", count_++);
  rules_ += name + " ::= " + body + "\n";
  return name;
}

const Json* Writer::Target(const std::string& reference) const {
  if (reference.empty() || reference[0] != '#') return nullptr;
  const Json* at = &root_;
  for (size_t i = 1; i < reference.size();) {
    if (reference[i] != '/') return nullptr;
    const size_t end = std::min(reference.find('/', i + 1), reference.size());
    std::string name;
    for (size_t k = i + 1; k < end; ++k) {
      const bool escape = reference[k] == '~' && k + 1 < end && (reference[k + 1] == '0' || reference[k + 1] == '1');
      name += escape ? (reference[++k] == '0' ? '~' : '/') : reference[k];
    }
    if (!at->is_object()) return nullptr;
    const auto found = at->find(name);
    if (found == at->end()) return nullptr;
    at = &*found;
    i = end;
  }
  return at;
}

StatusOr<std::string> Writer::Reference(const Place& place) {
  QUERN_RETURN_IF_ERROR(CheckKeywords(place, {"$ref"}));
  const Json& reference = place.schema["$ref"];
  if (!reference.is_string()) return Wrong(place.at, "$ref is no text");
  const auto name = reference.get<std::string>();
  if (const auto known = references_.find(name); known != references_.end()) return known->second;
  const Json* const target = Target(name);
  if (target == nullptr) return Wrong(place.at, "$ref \"" + name + "\" leads nowhere within the schema");
  // The rule has its name before its body, which may refer to it.
  const std::string rule = absl::StrFormat("ref%d", static_cast<int>(references_.size()));
  references_[name] = rule;
  QUERN_ASSIGN(const std::string value, Value({*target, name.substr(1), place.depth + 1}));
  rules_ += rule + " ::= " + value + "\n";
  return rule;
}

StatusOr<std::string> Writer::Alternatives(const Place& place, const std::string& keyword) {
  QUERN_RETURN_IF_ERROR(CheckKeywords(place, {keyword}));
  const Json& list = place.schema[keyword];
  if (!list.is_array() || list.empty()) return Wrong(place.at, keyword + " is no list, or an empty one");
  if (keyword == "allOf" && list.size() > 1) return NotKnown(place.at, "allOf of more than one schema is not taken");
  if (keyword == "oneOf") {
    if (list.size() > 256) return NotKnown(place.at, "oneOf of more than 256 schemas is not taken");
    for (size_t i = 0; i < list.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (!Disjoint(list[k], list[i]))
          return NotKnown(place.at, absl::StrFormat("of oneOf the schemas %d and %d may both be right: anyOf says that "
                                                    "either will do",
                                                    k, i));
      }
    }
  }
  std::string body;
  for (size_t i = 0; i < list.size(); ++i) {
    QUERN_ASSIGN(const std::string one, Value(place.Below(list[i], keyword + "/" + std::to_string(i))));
    body += (i > 0 ? " | " : "") + one;
  }
  return Define(body);
}

StatusOr<std::string> Writer::Enumeration(const Place& place) {
  const bool constant = place.schema.contains("const");
  QUERN_RETURN_IF_ERROR(CheckKeywords(place, {constant ? "const" : "enum", "type"}));
  if (!constant && !place.schema["enum"].is_array()) return Wrong(place.at, "enum is no list");
  std::vector<std::string> types;
  if (place.schema.contains("type")) {
    QUERN_ASSIGN(types, Types(place));
  }
  std::string body;
  for (const Json& value : Listed(place.schema)) {
    const bool fits = types.empty() || std::any_of(types.begin(), types.end(),
                                                   [&](const std::string& type) { return IsOfType(value, type); });
    if (fits) body += (body.empty() ? "" : " | ") + LiteralOf(value);
  }
  if (body.empty()) return Wrong(place.at, "no value that is listed is of its type");
  return Define(body);
}

StatusOr<std::vector<std::string>> Writer::Types(const Place& place) const {
  std::vector<std::string> types;
  const auto found = place.schema.find("type");
  if (found == place.schema.end()) {
    for (const auto& [name, value] : place.schema.items()) {
      const Keyword* const keyword = Find(name);
      if (keyword == nullptr || keyword->type.empty() || keyword->type == "-") continue;
      const std::string type(keyword->type);
      if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
    }
    return types;
  }
  const std::vector<Json> list =
      found->is_array() ? std::vector<Json>(found->begin(), found->end()) : std::vector<Json>{*found};
  for (const Json& type : list) {
    if (!type.is_string() ||
        std::find(std::begin(kTypes), std::end(kTypes), type.get<std::string>()) == std::end(kTypes))
      return Wrong(place.at,
                   "type " + type.dump() + " is none of object, array, string, number, integer, boolean, null");
    types.push_back(type.get<std::string>());
  }
  if (types.empty()) return Wrong(place.at, "type is an empty list");
  return types;
}

StatusOr<std::string> Writer::OfType(const Place& place, const std::string& type) {
  if (type == "object") return Object(place);
  if (type == "array") return Array(place);
  if (type == "string") return String(place);
  if (type == "number" || type == "integer") return Number(place, type == "integer");
  return Common(type);
}

StatusOr<std::string> Writer::Value(const Place& place) {
  if (place.depth > kMostDepth)
    return absl::ResourceExhaustedError(
        absl::StrFormat("the schema has more than %d schemas within each other", kMostDepth));
  if (place.schema.is_boolean()) {
    if (!place.schema.get<bool>()) return Wrong(place.at, "nothing fulfils the schema false");
    return Common("value");
  }
  if (!place.schema.is_object()) return Wrong(place.at, "a schema is an object, or true");
  QUERN_RETURN_IF_ERROR(CheckKeywords(place));
  if (place.schema.contains("$ref")) return Reference(place);
  for (const char* const keyword : {"anyOf", "oneOf", "allOf"}) {
    if (place.schema.contains(keyword)) return Alternatives(place, keyword);
  }
  if (place.schema.contains("enum") || place.schema.contains("const")) return Enumeration(place);
  QUERN_ASSIGN(const std::vector<std::string> types, Types(place));
  if (types.empty()) return Common("value");
  if (types.size() == 1) return OfType(place, types[0]);
  std::string body;
  for (const std::string& type : types) {
    QUERN_ASSIGN(const std::string one, OfType(place, type));
    body += (body.empty() ? "" : " | ") + one;
  }
  return Define(body);
}

const Json& Writer::Resolved(const Json& schema) const {
  const Json* at = &schema;
  for (int i = 0; i < kMostDepth && at->is_object() && at->contains("$ref") && (*at)["$ref"].is_string(); ++i) {
    const Json* const target = Target((*at)["$ref"].get<std::string>());
    if (target == nullptr) break;
    at = target;
  }
  return *at;
}

std::vector<std::string> Writer::KnownTypes(const Json& schema) const {
  if (!schema.is_object()) return {};
  std::vector<std::string> types;
  if (!schema.contains("type")) {
    for (const Json& value : Listed(schema)) {
      for (const std::string_view type : kTypes) {
        if (IsOfType(value, type)) types.emplace_back(type);
      }
    }
    return types;
  }
  const StatusOr<std::vector<std::string>> named = Types({schema, ""});
  return named.ok() ? *named : types;
}

bool Writer::Disjoint(const Json& one, const Json& other) const {
  const Json &a = Resolved(one), &b = Resolved(other);
  const std::vector<std::string> of_a = KnownTypes(a), of_b = KnownTypes(b);
  const auto alike = [](const std::string& x, const std::string& y) {
    const auto number = [](const std::string& type) { return type == "integer" ? "number" : type; };
    return number(x) == number(y);
  };
  const auto apart = [&](const auto& x, const auto& y, const auto& same) {
    return !x.empty() && !y.empty() && std::none_of(x.begin(), x.end(), [&](const auto& i) {
      return std::any_of(y.begin(), y.end(), [&](const auto& k) { return same(i, k); });
    });
  };
  const auto equal = [](const Json& x, const Json& y) { return nlohmann::json(x) == nlohmann::json(y); };
  if (apart(of_a, of_b, alike) || apart(Listed(a), Listed(b), equal)) return true;
  const auto object = [](const std::vector<std::string>& types) { return types.size() == 1 && types[0] == "object"; };
  if (!object(of_a) || !object(of_b) || !a.contains("properties") || !b.contains("properties")) return false;
  const auto needs = [](const Json& schema, const std::string& name) {
    const auto required = schema.find("required");
    return required != schema.end() && required->is_array() &&
           std::find(required->begin(), required->end(), Json(name)) != required->end();
  };
  const Json &left = a["properties"], &right = b["properties"];
  if (!left.is_object() || !right.is_object()) return false;
  for (const auto& [name, schema] : left.items()) {
    if (right.contains(name) && needs(a, name) && needs(b, name) &&
        apart(Listed(Resolved(schema)), Listed(Resolved(right[name])), equal))
      return true;
  }
  return false;
}

StatusOr<std::string> Writer::Run() {
  // Of the whole, {} means an object: a text, or null, is not what is asked for.
  static const Json& kObject = *new Json({{"type", "object"}});
  const bool anything = root_.is_object() && root_.empty();
  QUERN_ASSIGN(const std::string value, Value({anything ? kObject : root_, ""}));
  return "root ::= " + value + "\n" + rules_;
}

StatusOr<std::string> Grammar(std::string_view schema) {
  if (schema.size() > kMostSchema)
    return absl::ResourceExhaustedError(absl::StrFormat("a schema has at most %d bytes", kMostSchema));
  // A place in the text is what the parser itself would say: where it stopped.
  int depth = 0, deepest = 0;
  const auto count = [&](int, nlohmann::json::parse_event_t event, Json&) {
    using Event = nlohmann::json::parse_event_t;
    depth += (event == Event::object_start || event == Event::array_start) ? 1 : 0;
    depth -= (event == Event::object_end || event == Event::array_end) ? 1 : 0;
    deepest = std::max(deepest, depth);
    return true;
  };
  const Json json = Json::parse(schema, count, false);
  if (json.is_discarded()) return absl::InvalidArgumentError("the schema is no JSON");
  // What is compared and printed recurses.
  if (deepest > 4 * kMostDepth)
    return absl::ResourceExhaustedError("the schema has too many brackets within each other");
  QUERN_ASSIGN(std::string grammar, Writer(json).Run());
  // References that lead back to themselves, or values without end, show in the rules.
  if (const auto parsed = grammar::Grammar::Parse(grammar); !parsed.ok()) {
    const std::string why(parsed.status().message());
    return absl::Status(parsed.status().code(), "the schema has no grammar that can be followed (" + why + ")");
  }
  return grammar;
}

}  // namespace quern::json_schema
