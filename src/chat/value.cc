#include "chat/value.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace quern::chat {
namespace {

// How Python writes a float: the shortest text that reads back as it.
std::string RealText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char digits[64];
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = plain ? std::to_chars(digits, std::end(digits), value, std::chars_format::fixed)
                         : std::to_chars(digits, std::end(digits), value, std::chars_format::scientific);
  std::string text(digits, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string QuotedText(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string result(1, quote);
  for (const char32_t c : Characters(text)) {
    char escape[12];
    if (c == static_cast<char32_t>(quote) || c == '\\')
      (result += '\\') += static_cast<char>(c);
    else if (c == '\n')
      result += "\\n";
    else if (c == '\r')
      result += "\\r";
    else if (c == '\t')
      result += "\\t";
    else if (c == ' ' || (c != 0xa0 && u_isprint(static_cast<UChar32>(c)) && !u_isUWhiteSpace(static_cast<UChar32>(c))))
      result += FromCharacters({&c, 1});
    else if (std::snprintf(escape, sizeof(escape),
                           c < 0x100     ? "\\x%02x"
                           : c < 0x10000 ? "\\u%04x"
                                         : "\\U%08x",
                           static_cast<unsigned>(c)) > 0)
      result += escape;
  }
  return result + quote;
}

std::string JsonText(const std::string& text, bool ascii) {
  // The library replaces what is no UTF-8.
  return nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

Status Dump(const Value& value, const JsonStyle& style, int level, std::string& out) {
  if (level > 100) return absl::InvalidArgumentError("a value is nested too deeply for tojson");
  const auto line = [&](int depth) {
    if (style.indent >= 0) out += '\n' + std::string(static_cast<size_t>(style.indent) * depth, ' ');
  };
  // With an indent, items end at the line.
  const std::string item = style.indent >= 0 && style.item == ", " ? "," : style.item;
  if (value.none())
    out += "null";
  else if (const bool* flag = value.As<bool>())
    out += *flag ? "true" : "false";
  else if (const double* real = value.As<double>())
    out += std::isnan(*real) ? "NaN" : std::isinf(*real) ? (*real > 0 ? "Infinity" : "-Infinity") : RealText(*real);
  else if (const int64_t* integer = value.integer())
    out += std::to_string(*integer);
  else if (value.text() != nullptr)
    out += JsonText(*value.text(), style.ascii);
  else if (const List* list = value.list()) {
    out += '[';
    for (size_t i = 0; i < list->size(); ++i) {
      if (i > 0) out += item;
      line(level + 1);
      QUERN_RETURN_IF_ERROR(Dump((*list)[i], style, level + 1, out));
    }
    if (!list->empty()) line(level);
    out += ']';
  } else if (const auto* shared = value.As<std::shared_ptr<const Dict>>()) {
    Dict entries = **shared;
    if (style.sort_keys)
      std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    out += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out += item;
      line(level + 1);
      out += JsonText(entries[i].first, style.ascii) + style.key;
      QUERN_RETURN_IF_ERROR(Dump(entries[i].second, style, level + 1, out));
    }
    if (!entries.empty()) line(level);
    out += '}';
  } else {
    return absl::InvalidArgumentError(absl::StrFormat("%s is nothing that JSON has", value.Name()));
  }
  return absl::OkStatus();
}

std::string Repr(const Value& value, int level) {
  if (level > 100) return "...";
  if (value.text() != nullptr) return QuotedText(*value.text());
  std::string result;
  if (const List* list = value.list()) {
    for (const Value& item : *list) result += (result.empty() ? "" : ", ") + Repr(item, level + 1);
    return "[" + result + "]";
  }
  if (const Dict* dict = value.dict()) {
    for (const auto& [key, entry] : *dict)
      result += (result.empty() ? "" : ", ") + QuotedText(key) + ": " + Repr(entry, level + 1);
    return "{" + result + "}";
  }
  if (value.undefined()) return "Undefined";
  return value.ToText();
}

}  // namespace

const Dict* Value::dict() const {
  if (const auto* dict = As<std::shared_ptr<const Dict>>()) return dict->get();
  if (const auto* space = As<std::shared_ptr<Namespace>>()) return &(*space)->entries;
  return nullptr;
}

double Value::real() const {
  if (const bool* flag = As<bool>()) return *flag ? 1 : 0;
  if (const int64_t* integer = As<int64_t>()) return static_cast<double>(*integer);
  const double* real = As<double>();
  return real == nullptr ? 0 : *real;
}

bool Value::Truth() const {
  if (undefined() || none()) return false;
  if (number()) return real() != 0;
  if (text() != nullptr) return !text()->empty();
  if (list() != nullptr) return !list()->empty();
  if (const auto* shared = As<std::shared_ptr<const Dict>>()) return !(*shared)->empty();
  return true;
}

const char* Value::Name() const {
  constexpr const char* kNames[] = {"undefined", "none",   "a boolean",   "an integer", "a float", "a string",
                                    "a list",    "a dict", "a namespace", "a macro",    "a loop",  "a method"};
  return kNames[data_.index()];
}

std::string Value::ToText() const {
  if (undefined()) return "";
  if (none()) return "None";
  if (const bool* flag = As<bool>()) return *flag ? "True" : "False";
  if (const int64_t* integer = As<int64_t>()) return std::to_string(*integer);
  if (const double* real = As<double>()) return RealText(*real);
  if (text() != nullptr) return *text();
  if (list() != nullptr || dict() != nullptr) return ToRepr();
  return std::string("<") + Name() + ">";
}

std::string Value::ToRepr() const { return Repr(*this, 0); }

const Value* Find(const Dict& dict, std::string_view key) {
  for (const auto& [name, value] : dict) {
    if (name == key) return &value;
  }
  return nullptr;
}

bool Equal(const Value& a, const Value& b) {
  if (a.number() && b.number()) {
    if (!a.As<double>() && !b.As<double>() && a.integer() && b.integer()) return *a.integer() == *b.integer();
    return a.real() == b.real();
  }
  if (a.text() && b.text()) return *a.text() == *b.text();
  if (a.list() && b.list())
    return std::equal(a.list()->begin(), a.list()->end(), b.list()->begin(), b.list()->end(), Equal);
  if (a.dict() && b.dict()) {
    if (a.dict()->size() != b.dict()->size()) return false;
    return std::all_of(a.dict()->begin(), a.dict()->end(), [&](const auto& entry) {
      const Value* other = Find(*b.dict(), entry.first);
      return other != nullptr && Equal(entry.second, *other);
    });
  }
  return (a.none() && b.none()) || (a.undefined() && b.undefined());
}

StatusOr<int> Compare(const Value& a, const Value& b) {
  if (a.number() && b.number()) {
    if (a.integer() && b.integer()) return *a.integer() < *b.integer() ? -1 : *a.integer() > *b.integer();
    return a.real() < b.real() ? -1 : a.real() > b.real();
  }
  if (a.text() && b.text()) {
    // By characters, which for UTF-8 is by bytes.
    const int order = a.text()->compare(*b.text());
    return order < 0 ? -1 : order > 0;
  }
  if (a.list() && b.list()) {
    for (size_t i = 0; i < std::min(a.list()->size(), b.list()->size()); ++i) {
      if (Equal((*a.list())[i], (*b.list())[i])) continue;
      return Compare((*a.list())[i], (*b.list())[i]);
    }
    return a.list()->size() < b.list()->size() ? -1 : a.list()->size() > b.list()->size();
  }
  return absl::InvalidArgumentError(absl::StrFormat("%s and %s have no order", a.Name(), b.Name()));
}

StatusOr<std::string> ToJson(const Value& value, const JsonStyle& style) {
  std::string out;
  QUERN_RETURN_IF_ERROR(Dump(value, style, 0, out));
  return out;
}

Value FromJson(const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    List list;
    for (const auto& item : json) list.push_back(FromJson(item));
    return list;
  }
  if (json.is_object()) {
    Dict dict;
    for (const auto& [key, item] : json.items()) dict.emplace_back(key, FromJson(item));
    return dict;
  }
  return None{};
}

std::u32string Characters(std::string_view text) {
  std::u32string result;
  const auto size = static_cast<int32_t>(text.size());
  for (int32_t at = 0; at < size;) {
    const int32_t begin = at;
    UChar32 c;
    U8_NEXT(reinterpret_cast<const uint8_t*>(text.data()), at, size, c);
    if (c < 0) {
      // A surrogate stands for the byte, and becomes it again.
      at = begin + 1;
      c = 0xdc00 + static_cast<uint8_t>(text[begin]);
    }
    result += static_cast<char32_t>(c);
  }
  return result;
}

std::string FromCharacters(std::u32string_view characters) {
  std::string text;
  for (const char32_t c : characters) {
    if (c >= 0xdc00 && c < 0xdd00) {
      text += static_cast<char>(c - 0xdc00);
      continue;
    }
    char bytes[4];
    int32_t length = 0;
    U8_APPEND_UNSAFE(bytes, length, c);
    text.append(bytes, length);
  }
  return text;
}

}  // namespace quern::chat
