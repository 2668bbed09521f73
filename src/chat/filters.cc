// Filters, a row each.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat/calls.h"

namespace quern::chat {
namespace {

Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

StatusOr<List> ItemsOf(const Value& value, const Arguments& arguments) {
  QUERN_ASSIGN(List items, Items(value));
  QUERN_RETURN_IF_ERROR(arguments.budget->Take(static_cast<int64_t>(items.size())));
  return items;
}

// `value.a.b` of "a.b", each a key or a place.
StatusOr<Value> Path(const Value& value, const Value& path) {
  if (path.integer() != nullptr) return Item(value, path);
  if (path.text() == nullptr) return Wrong("an attribute is a string");
  Value result = value;
  std::string_view rest = *path.text();
  while (true) {
    const std::string part(rest.substr(0, rest.find('.')));
    int64_t index = 0;
    const bool number = std::from_chars(part.data(), part.data() + part.size(), index).ptr == part.data() + part.size();
    QUERN_ASSIGN(result, Item(result, number && !part.empty() ? Value(index) : Value(part)));
    if (part.size() == rest.size()) return result;
    rest.remove_prefix(part.size() + 1);
    if (result.undefined()) return result;
  }
}

// Items by a test: "select('string')", "selectattr('role', 'equalto', 'user')".
template <bool kAttribute, bool kKeep>
StatusOr<Value> Select(const Value& value, const Arguments& arguments) {
  QUERN_ASSIGN(const List items, ItemsOf(value, arguments));
  const size_t at = kAttribute ? 1 : 0;
  if (kAttribute && arguments.plain.empty()) return Wrong("selectattr and rejectattr take an attribute");
  Arguments rest{.plain = {}, .named = {}, .budget = arguments.budget, .now = arguments.now};
  for (size_t i = at + 1; i < arguments.plain.size(); ++i) rest.plain.push_back(arguments.plain[i]);
  List kept;
  for (const Value& item : items) {
    Value subject = item;
    if (kAttribute) {
      QUERN_ASSIGN(subject, Path(item, arguments.plain[0]));
    }
    bool holds = subject.Truth();
    if (arguments.plain.size() > at) {
      if (arguments.plain[at].text() == nullptr) return Wrong("a test is named by a string");
      QUERN_ASSIGN(holds, CallTest(*arguments.plain[at].text(), subject, rest));
    }
    if (holds == kKeep) kept.push_back(item);
  }
  return Value(std::move(kept));
}

StatusOr<Value> Map(const Value& value, const Arguments& arguments) {
  QUERN_ASSIGN(const List items, ItemsOf(value, arguments));
  const Value attribute = arguments.Get(SIZE_MAX, "attribute"), otherwise = arguments.Get(SIZE_MAX, "default");
  Arguments rest{.plain = {}, .named = arguments.named, .budget = arguments.budget, .now = arguments.now};
  for (size_t i = 1; i < arguments.plain.size(); ++i) rest.plain.push_back(arguments.plain[i]);
  List result;
  for (const Value& item : items) {
    if (!attribute.undefined()) {
      QUERN_ASSIGN(Value part, Path(item, attribute));
      result.push_back(part.undefined() && !otherwise.undefined() ? otherwise : std::move(part));
      continue;
    }
    if (arguments.plain.empty() || !arguments.plain[0].text()) return Wrong("map takes a filter or attribute=");
    QUERN_ASSIGN(Value part, CallFilter(*arguments.plain[0].text(), item, rest));
    result.push_back(std::move(part));
  }
  return Value(std::move(result));
}

StatusOr<Value> Join(const Value& value, const Arguments& arguments) {
  QUERN_RETURN_IF_ERROR(arguments.Check("join", {"d", "attribute"}));
  QUERN_ASSIGN(const List items, ItemsOf(value, arguments));
  const Value between = arguments.Get(0, "d"), attribute = arguments.Get(1, "attribute");
  const std::string separator = between.undefined() ? "" : between.ToText();
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (!attribute.undefined()) {
      QUERN_ASSIGN(item, Path(item, attribute));
    }
    const std::string part = item.ToText();
    QUERN_RETURN_IF_ERROR(arguments.budget->Take(static_cast<int64_t>(part.size() + separator.size())));
    if (i > 0) text += separator;
    text += part;
  }
  return Value(std::move(text));
}

StatusOr<Value> Json(const Value& value, const Arguments& arguments) {
  QUERN_RETURN_IF_ERROR(arguments.Check("tojson", {"indent", "ensure_ascii", "separators", "sort_keys"}));
  JsonStyle style;
  const Value indent = arguments.Get(0, "indent"), separators = arguments.Get(9, "separators");
  if (indent.integer() != nullptr) {
    if (*indent.integer() < 0 || *indent.integer() > 32) return Wrong("tojson takes an indent from 0 to 32");
    style.indent = static_cast<int>(*indent.integer());
  }
  style.sort_keys = arguments.Get(9, "sort_keys").Truth();
  style.ascii = arguments.Get(9, "ensure_ascii").Truth();
  if (separators.list() != nullptr && separators.list()->size() == 2) {
    style.item = (*separators.list())[0].ToText();
    style.key = (*separators.list())[1].ToText();
  }
  for (int i = 0; i < 2 + std::max(style.indent, 0); ++i) QUERN_RETURN_IF_ERROR(arguments.budget->Take(value));
  QUERN_ASSIGN(std::string text, ToJson(value, style));
  return Value(std::move(text));
}

StatusOr<Value> Indent(const Value& value, const Arguments& arguments) {
  QUERN_RETURN_IF_ERROR(arguments.Check("indent", {"width", "first", "blank"}));
  const Value width = arguments.Get(0, "width");
  std::string space(4, ' ');
  if (width.text() != nullptr) space = *width.text();
  if (width.integer() != nullptr) {
    if (*width.integer() < 0 || *width.integer() > 1000) return Wrong("indent takes a width from 0 to 1000");
    space.assign(static_cast<size_t>(*width.integer()), ' ');
  }
  const bool first = arguments.Get(1, "first").Truth(), blank = arguments.Get(2, "blank").Truth();
  const std::string text = value.ToText();
  std::string result;
  for (size_t at = 0, line = 0;; ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    QUERN_RETURN_IF_ERROR(arguments.budget->Take(static_cast<int64_t>(space.size())));
    if (line > 0) result += '\n';
    if (line == 0 ? first : blank || end > at) result += space;
    result.append(text, at, end - at);
    if (end == text.size()) return Value(std::move(result));
    at = end + 1;
  }
}

StatusOr<Value> Length(const Value& value, const Arguments&) {
  if (value.text() != nullptr) return Value(static_cast<int64_t>(Characters(*value.text()).size()));
  if (value.list() != nullptr) return Value(static_cast<int64_t>(value.list()->size()));
  if (value.dict() != nullptr) return Value(static_cast<int64_t>(value.dict()->size()));
  if (value.undefined()) return Value(int64_t{0});
  return Wrong(std::string(value.Name()) + " has no length");
}

StatusOr<Value> Integer(const Value& value, const Arguments& arguments) {
  const Value otherwise = arguments.Get(0, "default");
  if (const int64_t* integer = value.integer()) return Value(*integer);
  double real = value.real();
  bool right = value.number();
  if (value.text() != nullptr) {
    const std::string text = StripText(*value.text(), nullptr, true, true);
    int64_t integer = 0;
    const char* const begin = text.data() + text.starts_with('+');
    if (const auto [end, error] = std::from_chars(begin, text.data() + text.size(), integer);
        error == std::errc() && end == text.data() + text.size())
      return Value(integer);
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), real);
    right = error == std::errc() && end == text.data() + text.size();
  }
  if (right && std::abs(real) < 9.2e18) return Value(static_cast<int64_t>(real));
  return otherwise.undefined() ? Value(int64_t{0}) : otherwise;
}

StatusOr<Value> Real(const Value& value, const Arguments& arguments) {
  const Value otherwise = arguments.Get(0, "default");
  if (value.number()) return Value(value.real());
  if (value.text() != nullptr) {
    const std::string text = StripText(*value.text(), nullptr, true, true);
    double real = 0;
    const auto [end, error] = std::from_chars(text.data() + text.starts_with('+'), text.data() + text.size(), real);
    if (error == std::errc() && end == text.data() + text.size()) return Value(real);
  }
  return otherwise.undefined() ? Value(0.0) : otherwise;
}

// In order; texts without case unless `case_sensitive`.
StatusOr<Value> Sorted(List items, const Value& attribute, bool reverse, bool sensitive) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    Value key = item;
    if (!attribute.undefined() && !attribute.none()) {
      QUERN_ASSIGN(key, Path(item, attribute));
    }
    if (!sensitive && key.text() != nullptr) key = Lower(*key.text());
    if (!keyed.empty()) QUERN_RETURN_IF_ERROR(Compare(key, keyed.front().first).status());
    keyed.emplace_back(std::move(key), std::move(item));
  }
  std::vector<size_t> order(keyed.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int sign = Compare(keyed[a].first, keyed[b].first).value_or(0);
    return sign != 0 ? (sign < 0) != reverse : a < b;  // equal ones stay as they were
  });
  List sorted;
  for (const size_t i : order) sorted.push_back(std::move(keyed[i].second));
  return Value(std::move(sorted));
}

template <int kSign>
StatusOr<Value> Extreme(const Value& value, const Arguments& arguments) {
  QUERN_ASSIGN(const List items, ItemsOf(value, arguments));
  if (items.empty()) return Value(Undefined{"the extreme of nothing"});
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    QUERN_ASSIGN(const int order, Compare(items[i], items[best]));
    if (order * kSign > 0) best = i;
  }
  return items[best];
}

struct FilterRow {
  std::string_view name;
  StatusOr<Value> (*call)(const Value& value, const Arguments& arguments);
};

template <std::string (*kMap)(const std::string&)>
StatusOr<Value> OnText(const Value& value, const Arguments&) {
  return Value(kMap(value.ToText()));
}
std::string TitleWords(const std::string& text) {
  // Unlike the method, a word of the filter ends at white space and brackets alone.
  std::u32string all = Characters(text);
  std::string result, word;
  const auto flush = [&] { result += Capitalised(word), word.clear(); };
  for (const char32_t c : all) {
    const std::string one = FromCharacters({&c, 1});
    if (std::string_view("-({[<").find(one) != std::string_view::npos || StripText(one, nullptr, true, true).empty())
      flush(), result += one;
    else
      word += one;
  }
  flush();
  return result;
}

StatusOr<Value> ToText(const Value& value, const Arguments&) { return Value(value.ToText()); }
StatusOr<Value> ToList(const Value& value, const Arguments& arguments) {
  QUERN_ASSIGN(List items, ItemsOf(value, arguments));
  return Value(std::move(items));
}
StatusOr<Value> Default(const Value& value, const Arguments& arguments) {
  QUERN_RETURN_IF_ERROR(arguments.Check("default", {"default_value", "boolean"}));
  const bool missing = value.undefined() || (arguments.Get(1, "boolean").Truth() && !value.Truth());
  const Value otherwise = arguments.Get(0, "default_value");
  return !missing ? value : otherwise.undefined() ? Value("") : otherwise;
}

constexpr FilterRow kFilters[] = {
    {"trim",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       const Value characters = arguments.Get(0, "chars");
       return Value(StripText(value.ToText(), characters.text(), true, true));
     }},
    {"tojson", Json},
    {"length", Length},
    {"count", Length},
    {"join", Join},
    {"upper", OnText<Upper>},
    {"lower", OnText<Lower>},
    {"title", OnText<TitleWords>},
    {"capitalize", OnText<Capitalised>},
    {"default", Default},
    {"d", Default},
    {"select", Select<false, true>},
    {"reject", Select<false, false>},
    {"selectattr", Select<true, true>},
    {"rejectattr", Select<true, false>},
    {"map", Map},
    {"list", ToList},
    {"string", ToText},
    {"safe", ToText},
    {"int", Integer},
    {"float", Real},
    {"indent", Indent},
    {"min", Extreme<-1>},
    {"max", Extreme<1>},
    {"items",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       if (value.undefined()) return Value(List());
       if (value.dict() == nullptr) return Wrong("items takes a dict");
       return CallMethod("items", value, arguments);
     }},
    {"dictsort",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       if (value.dict() == nullptr) return Wrong("dictsort takes a dict");
       QUERN_ASSIGN(const Value items, CallMethod("items", value, arguments));
       const bool by_value = Equal(arguments.Get(1, "by"), Value("value"));
       return Sorted(*items.list(), Value(int64_t{by_value}), arguments.Get(2, "reverse").Truth(),
                     arguments.Get(0, "case_sensitive").Truth());
     }},
    {"sort",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       QUERN_RETURN_IF_ERROR(arguments.Check("sort", {"reverse", "case_sensitive", "attribute"}));
       QUERN_ASSIGN(List items, ItemsOf(value, arguments));
       return Sorted(std::move(items), arguments.Get(2, "attribute"), arguments.Get(0, "reverse").Truth(),
                     arguments.Get(1, "case_sensitive").Truth());
     }},
    {"unique",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       QUERN_ASSIGN(const List items, ItemsOf(value, arguments));
       List kept;
       for (const Value& item : items) {
         QUERN_RETURN_IF_ERROR(arguments.budget->Take(static_cast<int64_t>(kept.size())));
         const auto same = [&](const Value& other) {
           return item.text() && other.text() ? Lower(*item.text()) == Lower(*other.text()) : Equal(item, other);
         };
         if (std::none_of(kept.begin(), kept.end(), same)) kept.push_back(item);
       }
       return Value(std::move(kept));
     }},
    {"reverse",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       if (value.text() != nullptr) return Slice(value, Value(), Value(), Value(int64_t{-1}));
       QUERN_ASSIGN(List items, ItemsOf(value, arguments));
       std::reverse(items.begin(), items.end());
       return Value(std::move(items));
     }},
    {"replace",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       const Value from = arguments.Get(0, "old"), to = arguments.Get(1, "new"), most = arguments.Get(2, "count");
       if (from.text() == nullptr || to.text() == nullptr) return Wrong("replace takes two strings");
       QUERN_ASSIGN(std::string text, ReplaceText(value.ToText(), *from.text(), *to.text(),
                                                  most.integer() ? *most.integer() : -1, *arguments.budget));
       return Value(std::move(text));
     }},
    {"first",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       QUERN_ASSIGN(const List items, ItemsOf(value, arguments));
       return items.empty() ? Value(Undefined{"the first of nothing"}) : items.front();
     }},
    {"last",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       QUERN_ASSIGN(const List items, ItemsOf(value, arguments));
       return items.empty() ? Value(Undefined{"the last of nothing"}) : items.back();
     }},
    {"sum",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       QUERN_ASSIGN(const List items, ItemsOf(value, arguments));
       const Value attribute = arguments.Get(0, "attribute");
       double real = 0;
       int64_t whole = 0;
       bool integers = true;
       for (Value item : items) {
         if (!attribute.undefined()) {
           QUERN_ASSIGN(item, Path(item, attribute));
         }
         if (!item.number()) return Wrong("sum takes numbers");
         integers = integers && !item.As<double>() &&
                    !__builtin_add_overflow(whole, static_cast<int64_t>(item.real()), &whole);
         real += item.real();
       }
       return integers ? Value(whole) : Value(real);
     }},
    {"abs",
     [](const Value& value, const Arguments&) -> StatusOr<Value> {
       if (!value.number()) return Wrong("abs takes a number");
       if (value.integer() && *value.integer() != INT64_MIN) return Value(std::abs(*value.integer()));
       return Value(std::abs(value.real()));
     }},
    {"round",
     [](const Value& value, const Arguments& arguments) -> StatusOr<Value> {
       const Value digits = arguments.Get(0, "precision");
       if (!value.number()) return Wrong("round takes a number");
       const double scale = std::pow(10.0, digits.number() ? std::clamp(digits.real(), -15.0, 15.0) : 0);
       return Value(std::nearbyint(value.real() * scale) / scale);
     }},
    {"escape",
     [](const Value& value, const Arguments&) -> StatusOr<Value> {
       std::string text;
       for (const char c : value.ToText()) {
         const char* const entity = c == '&'    ? "&amp;"
                                    : c == '<'  ? "&lt;"
                                    : c == '>'  ? "&gt;"
                                    : c == '"'  ? "&#34;"
                                    : c == '\'' ? "&#39;"
                                                : nullptr;
         entity == nullptr ? text += c : text += entity;
       }
       return Value(std::move(text));
     }},
};

}  // namespace

StatusOr<Value> CallFilter(const std::string& name, const Value& value, const Arguments& arguments) {
  for (const FilterRow& row : kFilters) {
    if (row.name == name || (name == "e" && row.name == "escape")) return row.call(value, arguments);
  }
  return Wrong("there is no filter \"" + name + "\"");
}

}  // namespace quern::chat
