// Methods of texts, dicts and loops, and the functions that templates have.
#include <unicode/uchar.h>
#include <unicode/ustring.h>

#include <algorithm>

#include "chat/calls.h"

namespace quern::chat {
namespace {

bool IsSpace(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)) || (c >= 0x1c && c <= 0x1f); }

Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

// Full mappings: the upper case of a character may be several.
std::string Mapped(const std::string& text,
                   int32_t (*map)(UChar*, int32_t, const UChar*, int32_t, const char*, UErrorCode*)) {
  if (text.size() > (size_t{1} << 28)) return text;
  UErrorCode error = U_ZERO_ERROR;
  std::u16string wide(text.size() + 1, 0), result(3 * text.size() + 1, 0);
  int32_t size = 0;
  u_strFromUTF8(wide.data(), static_cast<int32_t>(wide.size()), &size, text.data(), static_cast<int32_t>(text.size()),
                &error);
  const int32_t length = map(result.data(), static_cast<int32_t>(result.size()), wide.data(), size, "", &error);
  std::string out(3 * static_cast<size_t>(std::max(length, 0)) + 1, 0);
  u_strToUTF8(out.data(), static_cast<int32_t>(out.size()), &size, result.data(), length, &error);
  if (U_FAILURE(error)) return text;  // no UTF-8: as it is
  out.resize(size);
  return out;
}

struct TextMethod {
  std::string_view name;
  StatusOr<Value> (*call)(const std::string& text, const Arguments& arguments);
};

template <bool kLeft, bool kRight>
StatusOr<Value> Strip(const std::string& text, const Arguments& arguments) {
  const Value characters = arguments.Get(0, "chars");
  return Value(StripText(text, characters.text(), kLeft, kRight));
}

// Pieces between separators; `right`: the last ones count.
StatusOr<Value> Split(const std::string& text, const Arguments& arguments, bool right) {
  const Value separator = arguments.Get(0, "sep"), most = arguments.Get(1, "maxsplit");
  int64_t left = most.integer() != nullptr && *most.integer() >= 0 ? *most.integer() : INT64_MAX;
  List pieces;
  if (separator.undefined() || separator.none()) {
    const std::u32string all = Characters(text);
    size_t at = 0, end = all.size();
    while (at < end && IsSpace(all[at])) ++at;
    if (right && left != INT64_MAX) return Wrong("rsplit by white space with a limit is not supported");
    while (at < end) {
      size_t stop = at;
      while (stop < end && !IsSpace(all[stop])) ++stop;
      if (left-- == 0) {
        while (end > at && IsSpace(all[end - 1])) --end;
        stop = end;
      }
      pieces.emplace_back(FromCharacters(std::u32string_view(all).substr(at, stop - at)));
      for (at = stop; at < end && IsSpace(all[at]);) ++at;
    }
    return Value(std::move(pieces));
  }
  if (separator.text() == nullptr || separator.text()->empty())
    return Wrong("split takes a separator that is not empty");
  const std::string& sep = *separator.text();
  std::string_view rest = text;
  for (; left > 0; --left) {
    const size_t found = right ? rest.rfind(sep) : rest.find(sep);
    if (found == std::string_view::npos) break;
    pieces.emplace_back(std::string(right ? rest.substr(found + sep.size()) : rest.substr(0, found)));
    rest = right ? rest.substr(0, found) : rest.substr(found + sep.size());
  }
  pieces.emplace_back(std::string(rest));
  if (right) std::reverse(pieces.begin(), pieces.end());
  return Value(std::move(pieces));
}

template <bool kEnd>
StatusOr<Value> BeginsOrEnds(const std::string& text, const Arguments& arguments) {
  const Value what = arguments.Get(0, "prefix");
  const auto one = [&](const Value& value) {
    return value.text() != nullptr && (kEnd ? text.ends_with(*value.text()) : text.starts_with(*value.text()));
  };
  if (what.list() != nullptr) return Value(std::any_of(what.list()->begin(), what.list()->end(), one));
  if (what.text() == nullptr) return Wrong("startswith and endswith take a string, or several in parentheses");
  return Value(one(what));
}

template <std::string (*kMap)(const std::string&)>
StatusOr<Value> Map(const std::string& text, const Arguments&) {
  return Value(kMap(text));
}

template <bool (*kTest)(char32_t)>
StatusOr<Value> Every(const std::string& text, const Arguments&) {
  const std::u32string all = Characters(text);
  return Value(!all.empty() && std::all_of(all.begin(), all.end(), kTest));
}
bool Digit(char32_t c) { return u_isdigit(static_cast<UChar32>(c)); }
bool Letter(char32_t c) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_L_MASK) != 0; }
bool LetterOrNumber(char32_t c) { return Letter(c) || (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_N_MASK) != 0; }

template <bool kLast>
StatusOr<Value> Position(const std::string& text, const Arguments& arguments) {
  const Value what = arguments.Get(0, "sub");
  if (what.text() == nullptr || arguments.plain.size() > 1) return Wrong("find takes one string");
  const size_t found = kLast ? text.rfind(*what.text()) : text.find(*what.text());
  if (found == std::string::npos) return Value(int64_t{-1});
  return Value(static_cast<int64_t>(Characters(std::string_view(text).substr(0, found)).size()));
}

constexpr TextMethod kTextMethods[] = {
    {"strip", Strip<true, true>},
    {"lstrip", Strip<true, false>},
    {"rstrip", Strip<false, true>},
    {"split", [](const std::string& t, const Arguments& a) { return Split(t, a, false); }},
    {"rsplit", [](const std::string& t, const Arguments& a) { return Split(t, a, true); }},
    {"splitlines",
     [](const std::string& text, const Arguments&) -> StatusOr<Value> {
       List lines;
       for (size_t at = 0; at < text.size();) {
         const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
         lines.emplace_back(text.substr(at, end - at));
         at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
       }
       return Value(std::move(lines));
     }},
    {"startswith", BeginsOrEnds<false>},
    {"endswith", BeginsOrEnds<true>},
    {"upper", Map<Upper>},
    {"lower", Map<Lower>},
    {"title", Map<Title>},
    {"capitalize", Map<Capitalised>},
    {"isdigit", Every<Digit>},
    {"isalpha", Every<Letter>},
    {"isalnum", Every<LetterOrNumber>},
    {"isspace", Every<IsSpace>},
    {"find", Position<false>},
    {"rfind", Position<true>},
    {"count",
     [](const std::string& text, const Arguments& arguments) -> StatusOr<Value> {
       const Value what = arguments.Get(0, "sub");
       if (what.text() == nullptr || what.text()->empty()) return Wrong("count takes a string that is not empty");
       int64_t count = 0;
       for (size_t at = text.find(*what.text()); at != std::string::npos; ++count)
         at = text.find(*what.text(), at + what.text()->size());
       return Value(count);
     }},
    {"removeprefix",
     [](const std::string& text, const Arguments& arguments) -> StatusOr<Value> {
       const Value what = arguments.Get(0, "prefix");
       if (what.text() == nullptr) return Wrong("removeprefix takes a string");
       return Value(text.starts_with(*what.text()) ? text.substr(what.text()->size()) : text);
     }},
    {"removesuffix",
     [](const std::string& text, const Arguments& arguments) -> StatusOr<Value> {
       const Value what = arguments.Get(0, "suffix");
       if (what.text() == nullptr) return Wrong("removesuffix takes a string");
       return Value(text.ends_with(*what.text()) ? text.substr(0, text.size() - what.text()->size()) : text);
     }},
    {"replace",
     [](const std::string& text, const Arguments& arguments) -> StatusOr<Value> {
       const Value from = arguments.Get(0, "old"), to = arguments.Get(1, "new"), most = arguments.Get(2, "count");
       if (!from.text() || !to.text()) return Wrong("replace takes two strings");
       QUERN_ASSIGN(std::string result, ReplaceText(text, *from.text(), *to.text(),
                                                    most.integer() ? *most.integer() : -1, *arguments.budget));
       return Value(std::move(result));
     }},
    {"join",
     [](const std::string& text, const Arguments& arguments) -> StatusOr<Value> {
       return CallFilter("join", arguments.Get(0, "iterable"),
                         {.plain = {Value(text)}, .named = {}, .budget = arguments.budget, .now = 0});
     }},
};

struct DictMethod {
  std::string_view name;
  StatusOr<Value> (*call)(const Dict& dict, const Arguments& arguments);
};
constexpr DictMethod kDictMethods[] = {
    {"items",
     [](const Dict& dict, const Arguments&) -> StatusOr<Value> {
       List items;
       for (const auto& [key, value] : dict) items.emplace_back(List{Value(key), value});
       return Value(std::move(items));
     }},
    {"keys",
     [](const Dict& dict, const Arguments&) -> StatusOr<Value> {
       List items;
       for (const auto& [key, value] : dict) items.emplace_back(key);
       return Value(std::move(items));
     }},
    {"values",
     [](const Dict& dict, const Arguments&) -> StatusOr<Value> {
       List items;
       for (const auto& [key, value] : dict) items.push_back(value);
       return Value(std::move(items));
     }},
    {"get",
     [](const Dict& dict, const Arguments& arguments) -> StatusOr<Value> {
       const Value key = arguments.Get(0, "key"), otherwise = arguments.Get(1, "default");
       const Value* found = key.text() == nullptr ? nullptr : Find(dict, *key.text());
       if (found != nullptr) return *found;
       return otherwise.undefined() ? Value(None{}) : otherwise;
     }},
};

struct Function {
  std::string_view name;
  StatusOr<Value> (*call)(const Arguments& arguments);
};
constexpr Function kFunctions[] = {
    {"raise_exception",
     [](const Arguments& arguments) -> StatusOr<Value> {
       return Wrong("the template refuses: " + arguments.Get(0, "message").ToText());
     }},
    {"strftime_now",
     [](const Arguments& arguments) -> StatusOr<Value> {
       const Value format = arguments.Get(0, "format");
       if (format.text() == nullptr || format.text()->size() > 1000) return Wrong("strftime_now takes a short string");
       std::tm parts = {};
       localtime_r(&arguments.now, &parts);
       char text[4096];
       const size_t size = std::strftime(text, sizeof(text), format.text()->c_str(), &parts);
       return Value(std::string(text, size));
     }},
    {"namespace",
     [](const Arguments& arguments) -> StatusOr<Value> {
       auto space = std::make_shared<Namespace>();
       const Value first = arguments.Get(0, "");
       if (first.dict() != nullptr) space->entries = *first.dict();
       for (const auto& [name, value] : arguments.named) space->entries.emplace_back(name, value);
       return Value(std::move(space));
     }},
    {"dict",
     [](const Arguments& arguments) -> StatusOr<Value> {
       Dict dict;
       const Value first = arguments.Get(0, "");
       if (first.dict() != nullptr) dict = *first.dict();
       for (const auto& [name, value] : arguments.named) {
         std::erase_if(dict, [&](const auto& entry) { return entry.first == name; });
         dict.emplace_back(name, value);
       }
       return Value(std::move(dict));
     }},
    {"range",
     [](const Arguments& arguments) -> StatusOr<Value> {
       int64_t bounds[3] = {0, 0, 1};
       const size_t count = arguments.plain.size();
       if (count < 1 || count > 3) return Wrong("range takes 1 to 3 integers");
       for (size_t i = 0; i < count; ++i) {
         if (!arguments.plain[i].integer()) return Wrong("range takes integers");
         bounds[count == 1 ? 1 : i] = *arguments.plain[i].integer();
       }
       if (bounds[2] == 0) return Wrong("range takes a step that is not 0");
       List items;
       for (int64_t at = bounds[0]; bounds[2] > 0 ? at < bounds[1] : at > bounds[1];) {
         if (items.size() == 100000) return Wrong("range has more than 100000 numbers");
         items.emplace_back(at);
         if (__builtin_add_overflow(at, bounds[2], &at)) break;
       }
       return Value(std::move(items));
     }},
};

template <typename Table>
auto Row(const Table& table, std::string_view name) {
  return std::find_if(std::begin(table), std::end(table), [&](const auto& row) { return row.name == name; });
}

}  // namespace

std::string StripText(const std::string& text, const std::string* characters, bool left, bool right) {
  const std::u32string all = Characters(text), set = characters ? Characters(*characters) : std::u32string();
  const auto goes = [&](char32_t c) { return characters ? set.find(c) != std::u32string::npos : IsSpace(c); };
  size_t begin = 0, end = all.size();
  while (left && begin < end && goes(all[begin])) ++begin;
  while (right && end > begin && goes(all[end - 1])) --end;
  return FromCharacters(std::u32string_view(all).substr(begin, end - begin));
}

std::string Upper(const std::string& text) { return Mapped(text, u_strToUpper); }
std::string Lower(const std::string& text) { return Mapped(text, u_strToLower); }

std::string Title(const std::string& text) {
  std::u32string all = Characters(text);
  bool inside = false;
  for (char32_t& c : all) {
    const auto point = static_cast<UChar32>(c);
    const bool cased = u_hasBinaryProperty(point, UCHAR_CASED);
    c = static_cast<char32_t>(inside ? u_tolower(point) : u_totitle(point));
    inside = cased;
  }
  return FromCharacters(all);
}

std::string Capitalised(const std::string& text) {
  std::u32string all = Characters(Lower(text));
  if (!all.empty()) all[0] = static_cast<char32_t>(u_totitle(static_cast<UChar32>(all[0])));
  return FromCharacters(all);
}

StatusOr<std::string> ReplaceText(const std::string& text, const std::string& from, const std::string& to, int64_t most,
                                  Budget& budget) {
  if (from.empty()) return Wrong("replace takes a string that is not empty");
  std::string result;
  for (size_t at = 0;;) {
    const size_t found = most == 0 ? std::string::npos : text.find(from, at);
    result.append(text, at, found == std::string::npos ? found : found - at);
    if (found == std::string::npos) return result;
    QUERN_RETURN_IF_ERROR(budget.Take(static_cast<int64_t>(to.size())));
    result += to;
    at = found + from.size();
    --most;
  }
}

bool HasMethod(const Value& value, std::string_view name) {
  if (value.text() != nullptr) return Row(kTextMethods, name) != std::end(kTextMethods);
  if (value.dict() != nullptr) return Row(kDictMethods, name) != std::end(kDictMethods);
  return value.As<Loop>() != nullptr && name == "cycle";
}

StatusOr<Value> CallMethod(const std::string& name, const Value& value, const Arguments& arguments) {
  if (value.text() != nullptr) return Row(kTextMethods, name)->call(*value.text(), arguments);
  if (value.dict() != nullptr) return Row(kDictMethods, name)->call(*value.dict(), arguments);
  const Loop* loop = value.As<Loop>();
  if (loop == nullptr || arguments.plain.empty()) return Wrong("cycle takes values");
  return arguments.plain[loop->index0 % arguments.plain.size()];
}

bool HasFunction(std::string_view name) { return Row(kFunctions, name) != std::end(kFunctions); }
StatusOr<Value> CallFunction(const std::string& name, const Arguments& arguments) {
  return Row(kFunctions, name)->call(arguments);
}

}  // namespace quern::chat
