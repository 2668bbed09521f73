// Attributes of a node: a small sorted map from name to typed value. The op table declares which names exist, their
// kinds and defaults; the builder fills in defaults, so a verified node has every attribute of its op.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/extent.h"

namespace quern::ir {

using AttrValue = std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>, std::vector<Extent>>;
enum class AttrKind : uint8_t { kBool, kInt, kFloat, kString, kDType, kInts, kExtents };  // in the order of AttrValue

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, AttrValue>> values);

  const AttrValue* Find(std::string_view name) const;
  void Set(std::string name, AttrValue value);
  void Erase(std::string_view name);

  // Typed getters. The attribute must exist with that kind: the verifier has seen to it.
  bool Bool(std::string_view name) const;
  int64_t Int(std::string_view name) const;
  double Float(std::string_view name) const;
  const std::string& String(std::string_view name) const;
  DType Type(std::string_view name) const;
  const std::vector<int64_t>& Ints(std::string_view name) const;
  const std::vector<Extent>& Extents(std::string_view name) const;

  const std::vector<std::pair<std::string, AttrValue>>& values() const { return values_; }
  bool operator==(const Attributes&) const = default;

 private:
  std::vector<std::pair<std::string, AttrValue>> values_;  // sorted by name
};

// "{axis = 1, keep_dim = true}" without the braces; strings are quoted and escaped, extents in brackets.
std::string ToString(const AttrValue& value);

}  // namespace quern::ir
