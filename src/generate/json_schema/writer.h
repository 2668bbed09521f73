// What the files that write grammars of JSON schemas share: rules that are being written, and the places of errors.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quern::json_schema {

using Json = nlohmann::ordered_json;

inline constexpr size_t kMostSchema = size_t{1} << 20;  // bytes
inline constexpr int kMostDepth = 64;                   // schemas within each other
// Counts of characters and items; the grammar has a limit of its own.
inline constexpr int64_t kMostCount = 65536;

// `text` as a literal of a grammar, with its quotes.
std::string Quoted(std::string_view text);
// The JSON of a value, compact, as a literal.
std::string LiteralOf(const Json& value);
// `part` {least, most} times; most -1: any number.
std::string Times(const std::string& part, int64_t least, int64_t most);
// Integers from `least` to `most`, within kMostInteger, as alternatives in brackets.
inline constexpr int64_t kMostInteger = 9999999999999999;
std::string IntegersBetween(int64_t least, int64_t most);

class Writer {
 public:
  explicit Writer(const Json& root) : root_(root) {}
  // All the rules, `root` first.
  StatusOr<std::string> Run();

 private:
  struct Place {
    const Json& schema;
    std::string at;  // a JSON pointer
    int depth = 0;
    Place Below(const Json& inner, const std::string& name) const { return {inner, at + "/" + name, depth + 1}; }
  };

  // Each gives what stands for the values in a rule: the name of another rule, a literal, or something in brackets.
  StatusOr<std::string> Value(const Place& place);
  StatusOr<std::string> Reference(const Place& place);
  StatusOr<std::string> Alternatives(const Place& place, const std::string& keyword);
  StatusOr<std::string> Enumeration(const Place& place);
  StatusOr<std::string> OfType(const Place& place, const std::string& type);
  StatusOr<std::string> String(const Place& place);
  StatusOr<std::string> Number(const Place& place, bool integer);
  StatusOr<std::string> Object(const Place& place);
  StatusOr<std::string> Array(const Place& place);

  // The types that a schema names, or that its keywords are about; all of them where there are none.
  StatusOr<std::vector<std::string>> Types(const Place& place) const;
  // Whether no value fulfils both, as far as types, constants, and members that must be and differ tell.
  bool Disjoint(const Json& a, const Json& b) const;
  std::vector<std::string> KnownTypes(const Json& schema) const;
  const Json& Resolved(const Json& schema) const;
  // What a reference names, or null.
  const Json* Target(const std::string& reference) const;
  // Unknown keywords, and, where `only` is not empty, those that are not in it, are errors.
  Status CheckKeywords(const Place& place, const std::vector<std::string_view>& only = {}) const;
  // A count of 0 or more; `otherwise` where it is not given.
  StatusOr<int64_t> Count(const Place& place, const std::string& keyword, int64_t otherwise) const;

  // The name of a new rule for `body`.
  StatusOr<std::string> Define(const std::string& body);
  // The name of a rule that all may use, defined with those it needs.
  std::string Common(const std::string& name);
  // Keys that are none of `names`, as text between quotes.
  StatusOr<std::string> OtherKeys(const std::vector<std::string>& names);

  const Json& root_;
  std::string rules_;
  int count_ = 0;
  std::map<std::string, bool> common_;
  std::map<std::string, std::string> references_;  // to rules
};

Status Wrong(const std::string& at, const std::string& what);
Status NotKnown(const std::string& at, const std::string& what);

}  // namespace quern::json_schema
