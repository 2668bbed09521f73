// Objects and arrays of schemas.
#include <algorithm>

#include "generate/grammar/code_points.h"
#include "generate/json_schema/writer.h"

namespace quern::json_schema {
namespace {

// Keys that are not named are written without escapes, so that each has one spelling: characters of a class that are
// none of `others`.
std::string PlainCharacter(const std::vector<uint32_t>& others) {
  std::string result = R"([^"\\\x00-\x1F\x7F)";
  for (const uint32_t point : others) result += absl::StrFormat("\\U%08X", point);
  return result + "]";
}

struct KeyTree {
  std::map<uint32_t, KeyTree> next;
  bool whole = false;  // a key ends here
};

const Json& Anything() {
  static const auto& kAnything = *new Json(true);
  return kAnything;
}

}  // namespace

StatusOr<std::string> Writer::OtherKeys(const std::vector<std::string>& names) {
  KeyTree tree;
  for (const std::string& name : names) {
    if (name.size() > 256) return NotKnown("", "additionalProperties beside a name of more than 256 bytes");
    KeyTree* at = &tree;
    bool plain = true;
    for (size_t i = 0; i < name.size();) {
      const auto [point, length] = grammar::Decode(std::string_view(name).substr(i));
      plain &= point >= 0x20 && point != 0x7F && point != '"' && point != '\\';
      at = &at->next[point];
      i += static_cast<size_t>(std::max(length, 1));
    }
    at->whole |= plain;  // others cannot be spelled without escapes
  }
  // The rule of a tree comes behind those of its branches; they are at most 256 deep.
  const auto write = [&](const auto& self, const KeyTree& at) -> StatusOr<std::string> {
    std::vector<uint32_t> points;
    std::string body;
    for (const auto& [point, below] : at.next) {
      QUERN_ASSIGN(const std::string rest, self(self, below));
      points.push_back(point);
      body += Quoted(grammar::Encode(point)) + " " + rest + " | ";
    }
    body += PlainCharacter(points) + " " + PlainCharacter({}) + "*";
    if (!at.whole) body += R"( | "")";
    return Define(body);
  };
  return write(write, tree);
}

StatusOr<std::string> Writer::Object(const Place& place) {
  struct Member {
    std::string name, text;
    bool required = false;
  };
  std::vector<Member> members;
  const Json& schema = place.schema;
  const auto properties = schema.find("properties");
  const auto additional = schema.find("additionalProperties");
  const bool closed = additional != schema.end() && additional->is_boolean() && !additional->get<bool>();
  if (additional != schema.end() && !additional->is_boolean() && !additional->is_object())
    return Wrong(place.at, "additionalProperties is no schema");
  const Json& others = additional == schema.end() ? Anything() : *additional;
  const auto add = [&](const std::string& name, const Place& value) -> Status {
    QUERN_ASSIGN(const std::string text, Value(value));
    members.push_back({name, LiteralOf(name) + " \":\" " + Common("ws") + " " + text, false});
    return absl::OkStatus();
  };
  if (properties != schema.end()) {
    if (!properties->is_object()) return Wrong(place.at, "properties is no object");
    for (const auto& [name, inner] : properties->items())
      QUERN_RETURN_IF_ERROR(add(name, place.Below(inner, "properties/" + name)));
  }
  const auto required = schema.find("required");
  if (required != schema.end()) {
    if (!required->is_array()) return Wrong(place.at, "required is no list");
    std::map<std::string, size_t> index;
    for (size_t i = 0; i < members.size(); ++i) index[members[i].name] = i;
    for (const Json& name : *required) {
      if (!name.is_string()) return Wrong(place.at, "required names something that is no text");
      const auto text = name.get<std::string>();
      if (!index.contains(text)) {
        if (closed) return Wrong(place.at, "\"" + text + "\" is required, but additionalProperties is false");
        QUERN_RETURN_IF_ERROR(add(text, place.Below(others, "additionalProperties")));
        index[text] = members.size() - 1;
      }
      members[index[text]].required = true;
    }
  }
  // More members than those named come where they are asked for, or where none are named.
  const std::string ws = Common("ws");
  const bool open = !closed && (additional != schema.end() || members.empty());
  if (open && members.empty() && (additional == schema.end() || additional->is_boolean())) return Common("object");
  std::string more;
  if (open) {
    std::vector<std::string> names;
    for (const Member& member : members) names.push_back(member.name);
    QUERN_ASSIGN(const std::string keys, OtherKeys(names));
    QUERN_ASSIGN(const std::string value, Value(place.Below(others, "additionalProperties")));
    QUERN_ASSIGN(more, Define(R"("\"" )" + keys + R"( "\":" )" + ws + " " + value + " " + ws));
  }
  // `first`: what may come where nothing has come yet; `rest`: behind a member. Both from the last member backwards.
  std::string rest = more.empty() ? "\"\"" : "(\",\" " + ws + " " + more + ")*";
  std::string first = more.empty() ? "\"\"" : "(" + more + " " + rest + ")?";
  for (size_t i = members.size(); i-- > 0;) {
    const std::string text = members[i].text + " " + ws;
    const std::string next = "(\",\" " + ws + " " + text + ")" + (members[i].required ? "" : "?");
    QUERN_ASSIGN(first, Define(text + " " + rest + (members[i].required ? "" : " | " + first)));
    if (i > 0) {
      QUERN_ASSIGN(rest, Define(next + " " + rest));
    }
  }
  return Define("\"{\" " + ws + " " + first + " \"}\"");
}

StatusOr<std::string> Writer::Array(const Place& place) {
  const Json& schema = place.schema;
  QUERN_ASSIGN(const int64_t least, Count(place, "minItems", 0));
  QUERN_ASSIGN(int64_t most, Count(place, "maxItems", -1));
  if (most >= 0 && most < least) return Wrong(place.at, "maxItems is less than minItems");
  std::vector<std::string> fixed;
  if (const auto found = schema.find("prefixItems"); found != schema.end()) {
    if (!found->is_array()) return Wrong(place.at, "prefixItems is no list");
    for (size_t i = 0; i < found->size(); ++i) {
      QUERN_ASSIGN(std::string item, Value(place.Below((*found)[i], "prefixItems/" + std::to_string(i))));
      fixed.push_back(std::move(item));
    }
  }
  const auto items = schema.find("items");
  const auto count = static_cast<int64_t>(fixed.size());
  if (items != schema.end() && items->is_array())
    return NotKnown(place.at, "a list as items is not taken; it is called prefixItems now");
  if (items != schema.end() && items->is_boolean() && !items->get<bool>()) {
    if (least > count) return Wrong(place.at, "minItems is more than there may be");
    most = most < 0 ? count : std::min(most, count);
  }
  const std::string ws = Common("ws");
  std::string item;
  if (most < 0 || most > count) {
    QUERN_ASSIGN(const std::string value, Value(place.Below(items == schema.end() ? Anything() : *items, "items")));
    QUERN_ASSIGN(item, Define(value + " " + ws));
  }
  // From the last that is fixed backwards: what may come behind i items, each with a comma but the first.
  const auto some = [&](int64_t before, const std::string& one) {
    const int64_t lowest = std::max<int64_t>(0, least - before);
    return Times("(\",\" " + ws + " " + one + ")", lowest, most < 0 ? -1 : std::max<int64_t>(most - before, 0));
  };
  std::string rest = "\"\"";
  if (!item.empty() && count > 0) rest = some(count, item);
  for (int64_t i = std::min(count, most < 0 ? count : most) - 1; i >= 0; --i) {
    const std::string comma = i == 0 ? "" : "\",\" " + ws + " ";
    const std::string one = comma + fixed[static_cast<size_t>(i)] + " " + ws + " " + rest;
    QUERN_ASSIGN(rest, Define(i < least ? one : "(" + one + ")?"));
  }
  if (count == 0 && !item.empty()) {
    const std::string all = item + " " + some(1, item);
    rest = least > 0 ? all : "(" + all + ")?";
  }
  return Define("\"[\" " + ws + " " + rest + " \"]\"");
}

}  // namespace quern::json_schema
