// Values of chat templates, as Python has them: what a template's variables hold.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace quern::chat {

class Value;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<std::string, Value>>;  // in order; keys are texts
struct Macro;

struct Undefined {
  std::string name;  // of what there is not, for errors
};
struct None {};
// What `namespace()` makes: the one value that is changed in place.
struct Namespace {
  Dict entries;
};
// A loop's own variable: where it is, in what.
struct Loop {
  int64_t index0 = 0, depth = 1;
  std::shared_ptr<const List> items;
};
// A method of a value, or a function that there is by name.
struct Bound {
  std::shared_ptr<const Value> self;  // null of a function
  std::string name;
};

// Copies share lists and dicts, which nothing changes. A value cannot hold itself but through a namespace.
class Value {
 public:
  using Data =
      std::variant<Undefined, None, bool, int64_t, double, std::string, std::shared_ptr<const List>,
                   std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, std::shared_ptr<const Macro>, Loop, Bound>;
  Value() : data_(Undefined{}) {}
  template <typename T>
    requires std::is_constructible_v<Data, T>
  Value(T value) : data_(std::move(value)) {}  // NOLINT: values are written as what they hold
  Value(const char* text) : data_(std::string(text)) {}
  Value(int value) : data_(int64_t{value}) {}
  Value(List list) : data_(std::make_shared<const List>(std::move(list))) {}
  Value(Dict dict) : data_(std::make_shared<const Dict>(std::move(dict))) {}

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&data_);
  }
  const std::string* text() const { return As<std::string>(); }
  const List* list() const {
    const auto* list = As<std::shared_ptr<const List>>();
    return list == nullptr ? nullptr : list->get();
  }
  // Of a dict or a namespace.
  const Dict* dict() const;
  bool undefined() const { return As<Undefined>() != nullptr; }
  bool none() const { return As<None>() != nullptr; }
  bool number() const { return As<int64_t>() || As<double>() || As<bool>(); }
  // As an integer: an int or a bool.
  const int64_t* integer() const { return As<int64_t>(); }
  double real() const;  // of a number
  bool Truth() const;
  // "a string", "a list": for errors.
  const char* Name() const;

  // str(): texts as they are; what `{{ value }}` prints, where undefined is nothing.
  std::string ToText() const;
  // repr(): texts in quotes.
  std::string ToRepr() const;

 private:
  Data data_;
};

// The entry of a dict, or null.
const Value* Find(const Dict& dict, std::string_view key);

bool Equal(const Value& a, const Value& b);
// Below 0, 0 or above; of numbers, texts and lists. Error: values that have no order.
StatusOr<int> Compare(const Value& a, const Value& b);

struct JsonStyle {
  int indent = -1;  // -1: one line
  bool sort_keys = false;
  bool ascii = false;
  std::string item = ", ", key = ": ";
};
// As Python's json.dumps writes it. Error: a value that JSON does not have.
StatusOr<std::string> ToJson(const Value& value, const JsonStyle& style);
Value FromJson(const nlohmann::ordered_json& json);

// Texts by characters, as Python counts them. Bytes that are no UTF-8 count one each.
std::u32string Characters(std::string_view text);
std::string FromCharacters(std::u32string_view characters);

}  // namespace quern::chat
