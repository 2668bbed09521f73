// What templates call: filters, tests, methods and functions, each a row of a table in a file of its own.
#pragma once

#include <ctime>
#include <span>
#include <string>
#include <string_view>

#include "chat/value.h"

namespace quern::chat {

// Counts what evaluating costs, so that no template takes long or makes much: about a byte made or looked at is 1.
class Budget {
 public:
  explicit Budget(int64_t units) : left_(units) {}
  // Error: nothing is left.
  Status Take(int64_t units);
  // What a value weighs: bytes of its texts, and some for each item, however often it holds the same one.
  Status Take(const Value& value);

 private:
  int64_t left_;
};

// Arguments of a call; what is missing is undefined.
struct Arguments {
  std::vector<Value> plain;
  std::vector<std::pair<std::string, Value>> named;
  Budget* budget;
  std::time_t now;
  // Calls a filter or test by name, for those that apply others.
  // The argument in this place or of this name.
  Value Get(size_t place, std::string_view name) const;
  // Of these names and no others, at most as many without.
  Status Check(std::string_view call, std::initializer_list<std::string_view> names) const;
};

// Errors of all: an unknown name, a value of the wrong kind, an argument there is not.
StatusOr<Value> CallFilter(const std::string& name, const Value& value, const Arguments& arguments);
StatusOr<bool> CallTest(const std::string& name, const Value& value, const Arguments& arguments);
// Whether `value` has this method.
bool HasMethod(const Value& value, std::string_view name);
StatusOr<Value> CallMethod(const std::string& name, const Value& value, const Arguments& arguments);
bool HasFunction(std::string_view name);
StatusOr<Value> CallFunction(const std::string& name, const Arguments& arguments);

// `object.name` and `object[key]`; undefined where there is none. Errors: of what is undefined.
StatusOr<Value> Attribute(const Value& object, const std::string& name);
StatusOr<Value> Item(const Value& object, const Value& key);
// The items that a loop goes over: of a dict its keys, of a text its characters.
StatusOr<List> Items(const Value& value);
StatusOr<Value> Slice(const Value& object, const Value& from, const Value& to, const Value& step);
// `container` has `item`.
StatusOr<bool> Contains(const Value& container, const Value& item);

// Texts, as Python's methods have them.
std::string StripText(const std::string& text, const std::string* characters, bool left, bool right);
std::string Upper(const std::string& text);
std::string Lower(const std::string& text);
std::string Title(const std::string& text);
std::string Capitalised(const std::string& text);
StatusOr<std::string> ReplaceText(const std::string& text, const std::string& from, const std::string& to, int64_t most,
                                  Budget& budget);

}  // namespace quern::chat
