#include "ir/attributes.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace quern::ir {

Attributes::Attributes(std::initializer_list<std::pair<std::string, AttrValue>> values) {
  for (const auto& [name, value] : values) Set(name, value);
}

const AttrValue* Attributes::Find(std::string_view name) const {
  for (const auto& [key, value] : values_) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Attributes::Set(std::string name, AttrValue value) {
  auto it = std::lower_bound(values_.begin(), values_.end(), name,
                             [](const auto& entry, const std::string& key) { return entry.first < key; });
  if (it != values_.end() && it->first == name)
    it->second = std::move(value);
  else
    values_.insert(it, {std::move(name), std::move(value)});
}

void Attributes::Erase(std::string_view name) {
  std::erase_if(values_, [&](const auto& entry) { return entry.first == name; });
}

namespace {

template <typename T>
const T& Get(const Attributes& attributes, std::string_view name) {
  const AttrValue* value = attributes.Find(name);
  QUERN_CHECK(value != nullptr && std::holds_alternative<T>(*value));
  return std::get<T>(*value);
}

}  // namespace

bool Attributes::Bool(std::string_view name) const { return Get<bool>(*this, name); }
int64_t Attributes::Int(std::string_view name) const { return Get<int64_t>(*this, name); }
double Attributes::Float(std::string_view name) const { return Get<double>(*this, name); }
const std::string& Attributes::String(std::string_view name) const { return Get<std::string>(*this, name); }
DType Attributes::Type(std::string_view name) const { return Get<DType>(*this, name); }
const std::vector<int64_t>& Attributes::Ints(std::string_view name) const {
  return Get<std::vector<int64_t>>(*this, name);
}
const std::vector<Extent>& Attributes::Extents(std::string_view name) const {
  return Get<std::vector<Extent>>(*this, name);
}

std::string ToString(const AttrValue& value) {
  struct Visitor {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return absl::StrCat(v); }
    std::string operator()(double v) const {
      if (std::isnan(v)) return "nan";
      if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
      // The shortest of 9 or 17 digits that reads back the same, always with a point or an exponent.
      std::string text = absl::StrFormat("%.9g", v);
      double back = 0;
      if (!absl::SimpleAtod(text, &back) || back != v) text = absl::StrFormat("%.17g", v);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return text;
    }
    std::string operator()(const std::string& v) const { return absl::StrCat("\"", absl::CEscape(v), "\""); }
    std::string operator()(DType v) const { return std::string(Name(v)); }
    std::string operator()(const std::vector<int64_t>& v) const {
      std::string text = "[";
      for (size_t i = 0; i < v.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", v[i]);
      return text + "]";
    }
    // Angle brackets tell extents from plain lists of integers.
    std::string operator()(const std::vector<Extent>& v) const {
      std::string text = "<";
      for (size_t i = 0; i < v.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", v[i].ToString());
      return text + ">";
    }
  };
  return std::visit(Visitor{}, value);
}

}  // namespace quern::ir
